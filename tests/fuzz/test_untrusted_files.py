"""Whatever stands in a file that a job reads back, it is refused with a message or means what it says.

``MCSPARK_FUZZ=10000 pytest tests/fuzz`` tries 10,000 inputs on each of the 20 targets, which takes about 15
minutes; without it each gets a few hundred. Every input has its deadline, so one that hangs fails too.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import changed_bytes, changed_values, texts

from mcspark import MulticalibratorModel
from mcspark.config import Config
from mcspark.config.yaml_text import parse_yaml
from mcspark.core.baselines.lsboost import LsboostFit
from mcspark.core.baselines.mcboost import McboostFit
from mcspark.core.baselines.multiaccuracy import MultiaccuracyFit
from mcspark.core.baselines.squarelev import SquarelevFit
from mcspark.core.cells.cells import Role
from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.model.additive import AdditiveForm
from mcspark.core.model.lightgbm_text import parse_trees
from mcspark.core.model.stages import Stage, Stages
from mcspark.core.saved import digest as _digest
from mcspark.core.segments import SegmentTable
from mcspark.data.kept_form import KeptForm, parse_kept
from mcspark.data.leases.claim import Claim, parse_claim
from mcspark.data.leases.journal import Entry, parse_entry
from mcspark.data.leases.manifest_form import parse_manifest
from mcspark.ml.persistence import _plain, model_from_text
from mcspark.ml.training.tuning import block_of

INPUTS = int(os.environ.get("MCSPARK_FUZZ", "400"))
fuzzed = settings(
    max_examples=INPUTS,
    deadline=5000,
    suppress_health_check=list(HealthCheck),
    database=None,
    derandomize=INPUTS < 1000,
)

GROUPS = FittedGroups(
    (
        Family("value", "sex", (1, 2), columns=("sex",), seen=(1, 2)),
        Family("bins", "age", (0, 1), bins=(0.0, 30.0, 120.0), columns=("age",), seen=(0, 1)),
        Family("predicate", "old", (1,), where="(`age` >= 60)", columns=("age",)),
    ),
    pairs=((0, 2),),
    dropped=(("job=x", "too small"),),
)
N = len(GROUPS.names)


def models() -> dict[str, MulticalibratorModel]:
    """One small model of every kind."""
    rng = np.random.default_rng(0)
    form = AdditiveForm(
        np.array([0.25, 0.5]), 0.01, rng.normal(0, 0.1, 3), rng.normal(0, 0.1, (N, 3)),
        np.array([[0, 2], [1, 3]]), np.array([0.1, -0.1]),
    )  # fmt: skip
    whole = np.int64
    fits: dict[str, Any] = {
        "trees": Stages((Stage("identity", form, 7), Stage("logit", form, 3)), GROUPS.names),
        "none": Stages((), GROUPS.names),
        "multiaccuracy": MultiaccuracyFit(0.1, 0.0, rng.normal(0, 0.1, N)),
        "mcboost": McboostFit(
            10, N, np.array([0, 3], whole), np.array([1, 2], whole), np.array([2, 4], whole)
        ),
        "lsboost": LsboostFit(
            10, N, rng.integers(-1, N, (2, 10, 3)), rng.integers(0, 10, (2, 10, 4))
        ),
        "squarelev": SquarelevFit(
            N, 0.0, np.array([0.5, 0.2]), rng.integers(-1, N, (2, 3)), rng.random((2, 3)),
            rng.normal(0, 0.1, (2, 4)), np.array([0.1, 0.05]), np.array([0.2, 0.1, 0.05]),
        ),
    }  # fmt: skip
    return {name: MulticalibratorModel(GROUPS, fit, method=name) for name, fit in fits.items()}


MODELS = {name: json.dumps(_plain(model)) for name, model in models().items()}


def of_segments(model: MulticalibratorModel) -> str:
    """The text of a model with calibrators by segment; theirs are in files of their own."""
    model.table = SegmentTable.of_values(["place", "kind"], [("a", 1), ("a1", -2), ("", 1)])
    return plain_text(model)


def plain_text(model: MulticalibratorModel) -> str:
    return json.dumps(_plain(model, ("0" * 64,) * len(model.table or ())))


MODELS["segments"] = of_segments(models()["trees"])
MEMBERS = np.array([[i >> k & 1 for k in range(N)] for i in range(2**N)], dtype=bool)
SCORES = np.linspace(0, 1, 2 * 2**N)


def sealed(plain: Any) -> str:
    """A forger knows the checksum too."""
    if isinstance(plain, dict):
        with contextlib.suppress(ValueError, OverflowError):
            plain = {**plain, "sha256": _digest(plain)}
    return json.dumps(plain)


def check_model(text: str) -> None:
    try:
        model = model_from_text(MulticalibratorModel, text)
    except ValueError as error:
        assert str(error)
        return
    # Accepted: it scores within [0, 1], and is written as it was read.
    member = np.zeros((4, len(model.fitted.names)), dtype=bool)
    member[1:] = np.random.default_rng(0).random((3, member.shape[1])) < 0.5
    scores = model.calibrator.apply_signatures(SCORES, np.arange(len(SCORES)) % 4, member)
    assert ((scores >= 0) & (scores <= 1)).all()
    again = model_from_text(MulticalibratorModel, plain_text(model))
    assert (again.table and again.table.to_dict()) == (model.table and model.table.to_dict())
    assert again.fitted == model.fitted
    assert again.calibrator.to_dict() == model.calibrator.to_dict()
    for family in model.fitted.families:
        assert family.where is None or "`" in family.where or family.where.upper() in ("TRUE", "FALSE")


@pytest.mark.parametrize("method", MODELS)
def test_models_as_they_are_written_are_read(method):
    model = model_from_text(MulticalibratorModel, MODELS[method])
    assert json.loads(MODELS[method])["calibrator"] == model.calibrator.to_dict()


@pytest.mark.parametrize("method", MODELS)
def test_damaged_models(method):
    @fuzzed
    @given(texts(MODELS[method]))
    def check(text: str) -> None:
        check_model(text)
        if text != MODELS[method] and _differs(text, MODELS[method]):
            with pytest.raises(ValueError, match=r"."):
                model_from_text(MulticalibratorModel, text)

    check()


def _differs(text: str, whole: str) -> bool:
    """Whether it says something else; spaces and a repeated key do not change what JSON says."""
    try:
        return json.dumps(json.loads(text), sort_keys=True) != json.dumps(json.loads(whole), sort_keys=True)
    except (ValueError, RecursionError):
        return True


@pytest.mark.parametrize("method", MODELS)
def test_forged_models_with_a_checksum_of_their_own(method):
    @fuzzed
    @given(changed_values(json.loads(MODELS[method])).map(sealed))
    def check(text: str) -> None:
        check_model(text)

    check()


MANIFEST = json.dumps({
    "schema_version": 1, "run_id": "calibrate-1", "job": "calibrate", "status": "ok",
    "configuration": {"scored": {"path": "x"}}, "configuration_hash": "00", "versions": {"spark": "3.5"},
    "rows": {"in": 1}, "metrics": {"before": {"loss": 0.1}},
})  # fmt: skip


@fuzzed
@given(texts(MANIFEST))
def test_manifests(text):
    try:
        manifest = parse_manifest(text)
    except ValueError as error:
        assert str(error)
        return
    assert manifest["schema_version"] == 1
    json.dumps(manifest, allow_nan=False)


LEASE = json.dumps({
    "run_id": "a", "part": "ds=1", "holds": True,
    "process": {"host": "h", "table": "boot b pid:[1]", "pid": 3, "started": 5},
})  # fmt: skip


@fuzzed
@given(texts(LEASE))
def test_leases(text):
    try:
        claim = parse_claim(text)
    except ValueError:
        return
    assert isinstance(claim, Claim)
    assert claim.process.is_gone() in (True, False, None)
    assert ".." not in claim.part.split("/")


JOURNAL = json.dumps({
    "run_id": "a", "state": "publishing", "before": {"file:/out": True, "s3a://b/out": "r0"},
    "shared": ["file:/model"], "home": "file:/out",
})  # fmt: skip


@fuzzed
@given(texts(JOURNAL))
def test_journals(text):
    try:
        entry = parse_entry(text)
    except ValueError:
        return
    assert isinstance(entry, Entry)
    assert ".." not in entry.run_id
    assert "/" not in entry.run_id


KEPT = KeptForm(
    partition="ds=2026-11-26", run_id="calibrate-1", configuration="a", inputs={"scored": "b"},
    bins=ScoreBins(2, (1, 0)), weight_unit=2.0**30, weight_sq_unit=2.0**30,
    kinds="__family_0 bigint, __family_1 string", rows=10, cells=4, weight=10.0, weight_sq=10.0,
    learning=(3, 0, 7), files={"part-0.parquet": 100}, content="1-4-00ff",
).to_text()  # fmt: skip


@fuzzed
@given(changed_values(json.loads(KEPT)).map(sealed))
def test_kept_cells(text):
    try:
        form = parse_kept(text)
    except ValueError as error:
        assert str(error)
        return
    assert parse_kept(form.to_text()) == form
    assert len(form.learning) == form.bins.n_bins
    assert not any("/" in name or name.startswith(".") for name in form.files)


BLOCK = json.dumps([[["mc_error", 20, 0.1], ["loss", None, 0.2]], [["mc_error", 20, None]]])


@fuzzed
@given(texts(BLOCK))
def test_kept_trials_of_a_comparison(text):
    """A block of two reports, or one that runs again."""
    found = block_of(text, "report", 2)
    assert found is None or (len(found) == 2 and all(len(row) == 3 for report in found for row in report))
    values = block_of(text, "validate", 1)
    assert values is None or all(value is None or math.isfinite(value) for value in values)


CONFIGURATION = """
scored: {path: data/scored, key: [id], score: score, label: label, partition: {ds: "2026-11-26"}}
attributes: [{path: data/attributes, key: [id]}]
groups: {min_share: 0.01, columns: [{column: a, bins: [0, 1]}], predicates: [{name: p, where: "a = 1"}]}
output: {path: out}
evaluation: {levels: [10, 20]}
"""


@fuzzed
@given(changed_bytes(CONFIGURATION.encode()))
def test_configurations(data):
    """Refused with words, or a configuration that comes back from its own plain form."""
    try:
        plain = parse_yaml(data.decode("utf-8", "replace"))
        config = Config.model_validate(plain)
    except ValueError as error:  # pydantic's too
        assert str(error)
        return
    assert Config.model_validate(config.to_plain()) == config


TREES = """tree
version=v3
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=2
objective=regression
feature_names=score g1 g2
feature_infos=[0:1] [0:1] [0:1]
tree_sizes=300

Tree=0
num_leaves=3
num_cat=0
split_feature=0 1
split_gain=1 1
threshold=0.5 0.5
decision_type=2 2
left_child=-1 -2
right_child=1 -3
leaf_value=0.1 -0.2 0.3
leaf_weight=1 1 1
leaf_count=1 1 1
internal_value=0 0
internal_weight=0 0
internal_count=3 2
is_linear=0
shrinkage=0.1


end of trees
"""


@fuzzed
@given(changed_bytes(TREES.encode()))
def test_lightgbm_texts(data):
    try:
        trees = parse_trees(data.decode("utf-8", "replace"))
    except ValueError as error:
        assert str(error)
        return
    AdditiveForm.from_trees(trees, 2 + max((int(t.split_feature.max(initial=0)) for t in trees), default=0))


@fuzzed
@given(st.text(max_size=60))
def test_any_text_is_no_file_of_ours(text):
    for parse in (parse_manifest, parse_entry, parse_claim, parse_kept, parse_trees):
        with pytest.raises(ValueError, match=r"."):
            parse(text)
    with pytest.raises(ValueError, match=r"."):
        model_from_text(MulticalibratorModel, text)
    assert Role.fit.name == "fit"

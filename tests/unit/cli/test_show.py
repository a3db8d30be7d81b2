"""What ``mcspark show`` says about a model, a manifest and a metrics table."""

from __future__ import annotations

import json

import numpy as np
import pytest
from report_runs import GROUPS, calibrated

from mcspark.cli.show import shown
from mcspark.cli.text import text_table
from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.core.model.additive import AdditiveForm
from mcspark.core.model.stages import Stage, Stages
from mcspark.core.training.recipe import Candidate, Recipe
from mcspark.core.training.rounds import Round
from mcspark.errors import ContractError
from mcspark.ml.fit_summary import FitSummary
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.ml.persistence import _plain
from mcspark.report.facts import number


def model() -> MulticalibratorModel:
    form = AdditiveForm(
        thresholds=np.array([0.5]),
        constant=0.1,
        base=np.array([0.0, 0.2]),
        curves=np.array([[0.0, 0.0], [-0.125, 0.375]]),
        pairs=np.array([[0, 1]]),
        pair_values=np.array([0.0625]),
    )
    family = Family("value", "SEX", (1, 2), columns=("SEX",), seen=(1, 2))
    fitted = FittedGroups((family,), dropped=(("RAC1P=3", "share 0.002 is not above min_share 0.01"),))
    stages = Stages((Stage("identity", form, 12),), fitted.names)
    return MulticalibratorModel(fitted, stages, method="trees", texts=())


@pytest.mark.parametrize("whole", [True, False], ids=["folder", "file"])
def test_a_model(tmp_path, whole):
    (tmp_path / "model.json").write_text(json.dumps(_plain(model())))
    text = shown(str(tmp_path if whole else tmp_path / "model.json"))
    lines = [line.split() for line in text.splitlines()]
    assert ["1", "12", "identity", "1", "1"] in lines
    assert ["1", "(every", "row)", "+0.2000", "+0.1000", "+0.3000"] in lines
    assert ["1", "SEX=2", "+0.1250", "-0.1250", "+0.3750"] in lines
    assert "SEX=1  " not in text.split("Largest pair terms")[0]  # no correction of its own
    assert ["SEX=1", "SEX=2", "1", "+0.0625"] in lines
    assert "RAC1P=3" in text
    assert "Rounds" not in text


def test_how_a_model_was_fitted(tmp_path):
    found = model()
    rounds = (Round(12, 0.05, 0.04, 0.001, kept=True), Round(3, 0.04, 0.041, 0.001, kept=False))
    found.summary = FitSummary(found.fitted.names, (12,), rounds, engine="synapseml 1.1.3")
    (tmp_path / "model.json").write_text(json.dumps(_plain(found)))
    text = shown(str(tmp_path))
    lines = [line.split() for line in text.splitlines()]
    assert "trained by synapseml 1.1.3" in text
    assert ["1", "12", "0.050000", "0.040000", "yes"] in lines
    assert ["2", "3", "0.040000", "0.041000", "no"] in lines


def test_what_was_tried_and_a_cap_that_was_reached(tmp_path):
    found = model()
    tried = (
        Candidate("logit", 1.0, 20, (12, 1), 0.04, chosen=True, why="the first candidate"),
        Candidate("identity", 0.3, 20, (5,), 0.05, chosen=False, why="not lower"),
    )
    recipe = Recipe("auto", "logit", 1.0, 20, 1, refit=True, candidates=tried)
    rounds = (Round(12, 0.05, 0.04, 0.001, kept=True, capped=True),)
    found.summary = FitSummary(found.fitted.names, (12,), rounds, recipe=recipe)
    (tmp_path / "model.json").write_text(json.dumps(_plain(found)))
    text = shown(str(tmp_path))
    lines = [line.split() for line in text.splitlines()]
    assert ["logit", "1", "20", "12", "+", "1", "0.040000", "yes", "the", "first", "candidate"] in lines
    assert ["identity", "0.3", "20", "5", "0.050000", "no", "not", "lower"] in lines
    assert "Warning: stage 1 stopped at calibrator.max_trees, with 12 trees" in text
    assert "raise calibrator.max_trees" in text


def test_a_changed_model_is_refused(tmp_path):
    plain = _plain(model())
    plain["calibrator"]["stages"][0]["trees"] = 13
    (tmp_path / "model.json").write_text(json.dumps(plain))
    with pytest.raises(ContractError, match="changed after it was written"):
        shown(str(tmp_path))


def test_a_metrics_table(tmp_path):
    facts = calibrated()
    folder = tmp_path / "run_id=x"
    folder.mkdir()
    facts.metrics.to_parquet(folder / "part-0.parquet", index=False)
    text = shown(str(folder), groups=2)
    for stage in ("before", "after"):
        assert number(facts.table.value(stage, "mc_error", 20)) in text
        assert number(facts.table.value(stage, "loss")) in text
    first, second, third = facts.table.worst_first()[:3]
    below = text.split("Worst groups")[1]
    assert first[:20] in below
    assert second[:20] in below
    assert third[:20] not in below


def test_a_manifest(tmp_path):
    facts = calibrated()
    manifest = {
        **facts.summary,
        "job": "calibrate",
        "status": "ok",
        "seconds": {"fit": 1.234},
        "versions": {"python": "3.11"},
    }
    path = tmp_path / "run.json"
    path.write_text(json.dumps(manifest))
    text = shown(str(path))
    assert text.startswith(f"Run {facts.summary['run_id']}: calibrate, ok")
    for word in ("6,004", "score_nan", "1.2", "python 3.11", number(facts.last("mc_error", 10))):
        assert word in text


def test_the_worst_group_of_a_manifest_is_called_by_its_label(tmp_path):
    level = {"mc_error": 0.1, "noise_floor": 0.0, "worst_group": "SEX=2", "p_value": 0.5}
    metrics = {"before": {"worst_group_smece": 0.1, "loss": 0.2, "by_level": {"20": level}}}
    groups = {"columns": [{"column": "SEX", "title": "Sex", "labels": {"2": "Women"}}]}
    plain = {"run_id": "r", "job": "audit", "status": "ok", "metrics": metrics}
    for configuration, words in (
        ({"groups": groups}, "Sex: Women"),
        ({"groups": 3}, "SEX=2"),
        (None, "SEX=2"),
    ):
        (tmp_path / "run.json").write_text(json.dumps({**plain, "configuration": configuration}))
        assert words in shown(str(tmp_path / "run.json"))


@pytest.mark.parametrize(
    "content",
    [
        "{}", "[1]", "nonsense", '{"run_id": 1}',
        '{"run_id": "1", "job": "score", "status": "ok", "rows": [1]}',
        '{"run_id": "1", "job": "score", "status": "ok", "metrics": {"after": {"by_level": 1}}}',
        '{"run_id": "1", "job": "score", "status": "ok", "metrics": {"after": {"by_level": {"20": []}}}}',
        '{"run_id": "1", "job": "score", "status": "ok", "rows": {"in": 1e300}, "seconds": {"a": []}}',
    ],
)  # fmt: skip
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(ContractError, match="no model, manifest or metrics table"):
        shown(str(path))
    other = tmp_path / "other.parquet"
    calibrated().metrics[["metric", "value"]].to_parquet(other)
    with pytest.raises(ContractError, match="missing"):
        shown(str(other))


def test_columns_stand_under_each_other():
    table = text_table(("name", "rows"), [("a", "1,000"), (GROUPS[4], "2"), ("x\ny", "–")])
    head, rule, *body = table.splitlines()
    assert len(body) == 3
    assert {line.rindex(c) for line, c in zip(body, ("0", "2", "–"), strict=True)} == {len(rule) - 1}
    assert head.startswith("name  ")
    assert "…" in table
    assert text_table(("a", "b"), []).splitlines()[0] == "a  b"

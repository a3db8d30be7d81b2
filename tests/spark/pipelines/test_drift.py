"""An audit beside an earlier run: what has changed, whether chance explains it, and what ends the run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mcspark.data.leases.manifest import read_manifest
from mcspark.errors import ContractError, GateError
from mcspark.pipelines.audit import audit
from mcspark.pipelines.judging.drift import earlier_metrics

from .conftest import configuration, population, start, write_tables


def audited(spark, calibrated, out, tables=None, table_format="parquet", **drift):
    config = configuration(
        tables or calibrated.tables, out, drift=drift,
        output={"path": str(out / "audited"), "format": table_format, "partition": None},
    )  # fmt: skip
    return audit(start(spark, "audit", config))


def test_the_same_table_has_not_drifted(spark, calibrated, tmp_path):
    strict = {"max_score_distance": 0, "max_share_change": 0, "mc_error_must_hold": True}
    manifest, model = (calibrated.summary["paths"][name] for name in ("manifest", "model"))
    made_by = json.loads((Path(model) / "run.json").read_text())["run_id"]
    origins = {manifest: calibrated.summary["run_id"], model: made_by}
    for i, (against, run_id) in enumerate(origins.items()):
        found = audited(spark, calibrated, tmp_path / str(i), against=against, **strict)["drift"]
        assert found["against"] == run_id
        assert (found["score_distance"], found["share_change"], found["problems"]) == (0, 0, [])
        before = calibrated.summary["metrics"]["before"]["by_level"]["20"]
        assert found["mc_error"]["20"]["then"] == before["mc_error"]
        assert found["mc_error"]["20"]["now"] == pytest.approx(before["mc_error"], abs=1e-12)


def test_the_calibrated_score_is_compared_with_its_own_interval(spark, calibrated, tmp_path):
    """The raw score beside the calibrated one: worse, and beyond noise."""
    against = calibrated.summary["paths"]["manifest"]
    with pytest.raises(GateError, match="beyond the intervals of both"):
        audited(spark, calibrated, tmp_path, against=against, stage="after", mc_error_must_hold=True)
    found = audited(spark, calibrated, tmp_path, against=against, stage="after")["drift"]["mc_error"]["20"]
    after = calibrated.summary["metrics"]["after"]["by_level"]["20"]
    assert (found["then"], list(found["then_interval"])) == (after["mc_error"], after["interval"])
    assert found["worse"]


@pytest.mark.parametrize("table_format", ["parquet", "delta"])
def test_shifted_scores_and_fewer_women(spark, calibrated, tmp_path, table_format):
    first = audited(spark, calibrated, tmp_path / "first", table_format=table_format)
    people = population()
    rng = np.random.default_rng(0)
    people["score"] = np.clip(people["score"] + 0.1, 0, 1)
    leave = (people["SEX"] == 2) & (rng.random(len(people)) < 0.5)
    write_tables(tmp_path / "tables", people[~leave])
    limits = {"max_score_distance": 0.05, "max_share_change": 0.05}
    run = {"tables": tmp_path / "tables", "against": first["paths"]["manifest"], **limits}
    with pytest.raises(GateError, match=r"distributed otherwise.*share of SEX=\d has changed") as caught:
        audited(spark, calibrated, tmp_path / "second", **run)
    manifest = read_manifest(spark, caught.value.paths["manifest"])
    assert (manifest["status"], len(manifest["drift"]["problems"])) == ("gate", 2)
    drift = manifest["drift"]
    assert drift["score_distance"] > drift["score_noise"] > 0
    test, weight = people[~leave & people["label"].notna()], "PWGTP"
    share = test.loc[test["SEX"] == 2, weight].sum() / test[weight].sum()
    everyone = population()[lambda f: f["label"].notna()]
    old = everyone.loc[everyone["SEX"] == 2, weight].sum() / everyone[weight].sum()
    assert drift["share_change"] == pytest.approx(old - share, abs=0.03)
    json.dumps(manifest, allow_nan=False)


def test_an_earlier_run_that_is_not_there(spark, calibrated, tmp_path):
    with pytest.raises(ContractError, match="no readable manifest"):
        audited(spark, calibrated, tmp_path, against=str(tmp_path / "none.json"))
    with pytest.raises(ContractError, match="does not say which run has made the model"):
        audited(spark, calibrated, tmp_path, against=str(tmp_path / "model"))
    assert not (tmp_path / "audited_metrics").exists()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"paths": None}, "has left no metrics"),
        ({"paths": [1]}, "has left no metrics"),
        ({"paths": "x"}, "has left no metrics"),
        ({"paths": {"metrics": [1]}}, "has left no metrics"),
        ({"paths": {"metrics": ""}}, "has left no metrics"),
        ({"paths": {"metrics": "/"}}, "has left no metrics"),
        ({"paths": {"metrics": "a b`; drop"}}, "cannot be read as a table"),
        ({"run_id": "../x"}, "run id '../x' is not safe as a file name"),
        ({"run_id": 5}, r"\['run_id'\] of the manifest are of the wrong type"),
    ],
)
def test_a_manifest_that_says_something_else_is_refused_in_a_sentence(
    spark, calibrated, tmp_path, changed, words
):
    manifest = read_manifest(spark, calibrated.summary["paths"]["manifest"])
    (tmp_path / "m.json").write_text(json.dumps(manifest | changed))
    with pytest.raises(ContractError, match=words):
        earlier_metrics(spark, str(tmp_path / "m.json"))

"""NaN, infinities and nulls in score, label and weight."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

BAD = {
    ("score", None): "score_null", ("score", np.nan): "score_nan",
    ("score", np.inf): "score_infinite", ("score", -np.inf): "score_infinite",
    ("label", np.nan): "label_nan", ("label", np.inf): "label_infinite", ("label", -np.inf): "label_infinite",
    ("w", None): "weight_null", ("w", np.nan): "weight_nan", ("w", np.inf): "weight_infinite",
}  # fmt: skip


@pytest.fixture
def spoilt(world, people):
    columns = {name: list(people[name]) for name in ("house", "person", "score", "label", "w")}
    for i, (name, value) in enumerate(BAD):
        columns[name][i] = value
    columns["label"][20] = None  # not labelled: no fault
    pq.write_table(pa.table(columns), world.root / "scored" / "part-0.parquet")  # NaN and null told apart
    return world


def test_scoring_passes_labels_through_unjudged(spoilt, people):
    """Nothing is learned from them: their rows are scored, and a label of text is left out."""
    done = spoilt.ran("score")
    others = [reason for reason in BAD.values() if not reason.startswith("label")]
    assert done.summary["rejected_by_reason"] == pd.Series(others).value_counts().to_dict()
    assert done.summary["rows"]["scored"] == len(people) - len(others)
    assert np.isinf(spoilt.output(done)["label"]).sum() == 2
    spoilt.write("scored", people[["house", "person", "score", "w"]].assign(label="yes"))
    assert "label" not in spoilt.output(spoilt.ran("score"))


@pytest.mark.parametrize("job", ["calibrate"])
def test_each_is_rejected_by_its_reason_and_no_metric_is_nan(spoilt, people, job):
    done = spoilt.ran(job, calibrator={"method": "multiaccuracy"})
    expected = pd.Series(list(BAD.values())).value_counts().to_dict()
    assert done.summary["rejected_by_reason"] == expected
    assert done.summary["rows"]["scored"] == len(people) - len(BAD)
    rejected = spoilt.rejected(done)
    assert [list(r) for r in rejected["reasons"]] == [[reason] for reason in BAD.values()]
    output = spoilt.output(done)
    assert output["label"].isna().sum() == 1
    assert np.isfinite(output[["score", "calibrated_score", "w"]].to_numpy()).all()
    json.dumps(done.summary, allow_nan=False)
    assert "NaN" not in Path(done.summary["paths"]["manifest"].removeprefix("file:")).read_text()
    if job == "calibrate":
        metrics = pq.read_table(done.summary["paths"]["metrics"], partitioning=None)["value"].to_pylist()
        assert len(metrics) > 100
        assert np.isfinite([value for value in metrics if value is not None]).all()

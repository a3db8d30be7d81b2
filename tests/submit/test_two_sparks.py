"""Two versions of Spark, each with its own Python, give the same bits by the same library of trees.

``MCSPARK_OTHER_PYTHON=.venv4/bin/python pytest tests/submit/test_two_sparks.py`` names the other environment.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from harness import ROOT, THIS_PYTHON, Submitted, submit
from small_tables import KEY, write_config, write_tables

from mcspark.acs.population import population_arrays

OTHER = os.environ.get("MCSPARK_OTHER_PYTHON")
pytestmark = pytest.mark.skipif(OTHER is None, reason="MCSPARK_OTHER_PYTHON names no second Spark")
PYTHONS = {"this": THIS_PYTHON, "other": ROOT / (OTHER or "")}


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    people = pd.DataFrame(population_arrays(6000, seed=17))
    people.loc[:199, "label"] = np.nan
    folder = tmp_path_factory.mktemp("tables")
    write_tables(folder, people, files=2)
    return folder


def run(job: str, which: str, config: Path) -> Submitted:
    done = submit(f"jobs/{job}.py", "--config", config, python=PYTHONS[which])
    assert done.exit_code == 0, done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def calibrated(tables, tmp_path_factory) -> dict[str, tuple[Path, Submitted]]:
    """Folder and summary of each Spark."""
    runs = {}
    for which in PYTHONS:
        folder = tmp_path_factory.mktemp(which)
        learning: dict[str, Any] = {
            "recipe": "paper", "engine": "lightgbm", "max_trees": 60, "learning_rate": 0.1, "rounds": 2,
        }  # fmt: skip
        runs[which] = folder, run("calibrate", which, write_config(folder, tables, calibrator=learning))
    return runs


def output(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "calibrated").sort_values(KEY, ignore_index=True)


def test_the_sparks_are_two(calibrated):
    manifests = [done.summary["paths"]["manifest"] for _, done in calibrated.values()]
    told = [json.loads(Path(path.removeprefix("file:")).read_text())["versions"] for path in manifests]
    assert told[0]["spark"] != told[1]["spark"]


def test_both_learn_the_same_model_byte_for_byte(calibrated):
    (this, done), (other, _) = calibrated.values()
    assert done.summary["engine"].startswith("lightgbm ")
    assert [stage["trees"] > 0 for stage in done.summary["stages"]] == [True, True]
    for name in ("model.json", "trees_0.txt", "trees_1.txt"):
        assert (this / "model" / name).read_bytes() == (other / "model" / name).read_bytes(), name


def test_both_write_the_same_scores_bit_for_bit(calibrated):
    this, other = (output(folder) for folder, _ in calibrated.values())
    assert list(this) == list(other)
    for column in this:
        if this[column].dtype == np.float64:
            assert this[column].to_numpy().tobytes() == other[column].to_numpy().tobytes(), column
        else:
            pd.testing.assert_series_equal(this[column], other[column])


def test_one_scores_by_the_model_of_the_other(calibrated, tables, tmp_path):
    model = {"path": str(calibrated["this"][0] / "model")}
    run("score", "other", write_config(tmp_path, tables, model=model))
    expected = output(calibrated["this"][0])["calibrated_score"].to_numpy()
    assert output(tmp_path)["calibrated_score"].to_numpy().tobytes() == expected.tobytes()

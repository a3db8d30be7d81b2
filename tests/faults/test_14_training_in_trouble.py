"""Training data with empty partitions or hardly any rows, and a training that never ends."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace

import pytest

from mcspark.errors import TransientError
from mcspark.ml.training import driver_training, trees

from .conftest import content


def test_fewer_rows_than_tasks_and_empty_partitions(world):
    """Seven rows in seven files, most of them empty after the split."""
    world.write("scored", world_rows(world, 7), files=7)
    done = world.ran(
        "calibrate", calibrator={"min_rows_in_leaf": 1}, split={"test": 0.2, "early_stopping": 0.5}
    )
    assert done.summary["rows"]["scored"] == 7


def world_rows(world, count):
    import pandas as pd

    return pd.read_parquet(world.root / "scored").iloc[:count]


def test_too_few_rows_to_learn_from_give_the_identity(world):
    world.write("scored", world_rows(world, 2))
    done = world.ran("calibrate")
    assert done.summary["stages"] == []
    assert "the score ships as it is" in done.log
    output = world.output(done)
    assert list(output["calibrated_score"]) == list(output["score"])


@pytest.mark.synapseml
def test_training_on_rows_with_empty_partitions(spark, world):
    world.write("scored", world_rows(world, 240), files=9)
    spark.conf.set("spark.sql.shuffle.partitions", "40")
    try:
        done = world.ran("calibrate", calibrator={"engine": "auto", "training": "rows", "max_trees": 3})
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "4")
    assert done.summary["rows"]["scored"] == 240


@pytest.mark.synapseml
def test_a_training_that_never_ends_is_exit_75_and_no_model_is_saved(world, monkeypatch):
    """The limit itself, with real tasks that hang, is tested with the watchdog."""
    limits = []

    @contextmanager
    def at_once(spark, seconds, what):
        limits.append(seconds)
        raise TransientError(f"{what} did not end within {seconds} s and was cancelled. Try again")
        yield

    monkeypatch.setattr(trees, "time_limit", at_once)
    before = content(world.root / "model")
    done = world.refused(
        "training the trees did not end within 7", code=75, job="calibrate",
        calibrator={"engine": "auto", "timeout_seconds": 7},
    )  # fmt: skip
    assert (limits, done.summary["status"]) == ([7.0], "transient")
    assert content(world.root / "model") == before


def test_so_it_is_with_the_official_lightgbm(world, monkeypatch):
    ticks = count(step=4)
    monkeypatch.setattr(driver_training, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    before = content(world.root / "model")
    done = world.refused(
        "training the trees did not end within 7 s", code=75, job="calibrate",
        calibrator={"engine": "lightgbm", "timeout_seconds": 7},
    )  # fmt: skip
    assert done.summary["status"] == "transient"
    assert next(ticks) == 12, "it was given up after the second tree"
    assert content(world.root / "model") == before

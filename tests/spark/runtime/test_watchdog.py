"""A hanging job ends at its limit; nothing else is touched."""

from __future__ import annotations

import time

import pytest
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession

from mcspark.errors import TransientError
from mcspark.runtime.process import watchdog
from mcspark.runtime.process.watchdog import time_limit


def hang(spark: SparkSession, seconds: float) -> int:
    """A job whose only task sleeps."""

    def sleep(rows: object) -> list[int]:
        time.sleep(seconds)
        return [1]

    return spark.sparkContext.parallelize([0], 1).mapPartitions(sleep).sum()


def test_a_hanging_job_is_cancelled_at_its_limit(spark: SparkSession) -> None:
    start = time.monotonic()
    with (
        pytest.raises(TransientError, match=r"waiting did not end within 2 s") as caught,
        time_limit(spark, 2, "waiting"),
    ):
        hang(spark, 120)
    assert time.monotonic() - start < 30
    assert caught.value.exit_code == 75
    assert hang(spark, 0) == 1  # the session is of use again


def test_work_in_time_is_left_alone(spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setJobGroup("outer", "outer work")
    try:
        with time_limit(spark, 60, "counting"):
            assert context.getLocalProperty("spark.jobGroup.id") != "outer"
            assert hang(spark, 0) == 1
        assert context.getLocalProperty("spark.jobGroup.id") == "outer"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


def test_an_error_in_time_stays_what_it_is(spark: SparkSession) -> None:
    with pytest.raises(ZeroDivisionError), time_limit(spark, 60, "dividing"):
        _ = 1 / 0


def test_work_that_ignores_the_cancellation_ends_the_process(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(watchdog, "GRACE_SECONDS", 0.5)
    monkeypatch.setattr(watchdog, "_end_process", told.append)
    with time_limit(spark, 0.2, "python work"):
        time.sleep(3)
    assert len(told) == 1
    assert "python work" in told[0]


@pytest.mark.synapseml
@pytest.mark.timeout(180)
def test_a_fit_with_more_tasks_than_slots_does_not_hang(spark: SparkSession) -> None:
    from synapse.ml.lightgbm import LightGBMRegressor

    rows = [(Vectors.dense([float(i), 1.0]), float(i % 7)) for i in range(200)]
    frame = spark.createDataFrame(rows, ["features", "label"]).repartition(8).cache()
    frame.count()
    with pytest.raises(TransientError), time_limit(spark, 10, "training"):
        LightGBMRegressor(numIterations=5, numTasks=8, minDataInLeaf=1).fit(frame)
    frame.unpersist()

"""Slots are counted on the live session, not guessed from settings."""

from __future__ import annotations

from pyspark.sql import SparkSession

from mcspark.runtime.executors import executors, slots


def test_local_mode_has_its_threads_as_slots(spark: SparkSession) -> None:
    assert slots(spark) == 2
    (driver,) = executors(spark)
    assert (driver.id, driver.cores, driver.slots) == ("driver", 2, 2)

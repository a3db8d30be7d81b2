"""Slots are counted on the live session, not guessed from settings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from mcspark.runtime.tasks import executors as module
from mcspark.runtime.tasks.executors import Executor, executors, settled_slots, slots


def test_local_mode_has_its_threads_as_slots(spark: SparkSession) -> None:
    assert slots(spark) == 2
    (driver,) = executors(spark)
    assert (driver.id, driver.cores, driver.slots) == ("driver", 2, 2)
    assert settled_slots(spark, quiet_seconds=60) == 2  # which nobody waits for: no other will come


def test_executors_that_come_one_after_another_are_all_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def come(_: Any) -> tuple[Executor, ...]:
        looks.append(len(looks))
        return tuple(Executor(str(i), "host", 1, 1) for i in range(min(len(looks) // 3, 4)))

    monkeypatch.setattr(module, "executors", come)
    conf = {"spark.master": "spark://host:7077"}
    cluster = cast("SparkSession", SimpleNamespace(conf=conf))
    assert settled_slots(cluster, quiet_seconds=0.5) == 4

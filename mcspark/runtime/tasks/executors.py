"""What the session's executors offer now, task slots and cores, and what the driver does."""

from __future__ import annotations

import os
import time

from pyspark.sql import SparkSession

from mcspark.engine.choice import engine_of
from mcspark.engine.interface import Executor
from mcspark.errors import TransientError


def driver_cores() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # a container may have fewer than the machine; macOS does not say
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def executors(spark: SparkSession) -> tuple[Executor, ...]:
    """The live executors that run tasks, by id."""
    return engine_of(spark).executors()


def slots(spark: SparkSession, wait_seconds: float = 60) -> int:
    """How many tasks run at once: never ask LightGBM for more, since it waits for all of them for ever.

    Executors register some time after the session starts; the first is waited for.

    Raises
    ------
    TransientError
        No executor came in time.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        count = sum(executor.slots for executor in executors(spark))
        if count:
            return count
        if time.monotonic() > deadline:
            raise TransientError(
                f"No executor registered within {wait_seconds:.0f} s on {_master(spark)}: "
                "the cluster is full, or its workers are down."
            )
        time.sleep(0.2)


def settled_slots(spark: SparkSession, quiet_seconds: float = 1.0) -> int:
    """:func:`slots` once no executor has come for a while: they register one after another."""
    count = slots(spark)
    if is_local(spark):
        return count
    since = time.monotonic()
    while time.monotonic() - since < quiet_seconds:
        time.sleep(0.1)
        if (now := slots(spark)) != count:
            count, since = now, time.monotonic()
    return count


def is_local(spark: SparkSession) -> bool:
    """Whether the tasks run in the driver itself."""
    return _master(spark).partition("[")[0] == "local"


def _master(spark: SparkSession) -> str:
    return str(spark.conf.get("spark.master", "a Spark elsewhere"))

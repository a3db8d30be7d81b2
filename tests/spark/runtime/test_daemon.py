"""Python workers of a local session have their libraries before their first task; others are left alone."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mcspark.engine.choice import engine_of
from mcspark.engine.classic import workers

DAEMON = "mcspark.runtime.daemon"


def test_a_worker_has_pandas_before_it_is_asked_for(spark: SparkSession) -> None:
    def imported(_: Iterable[int]) -> list[bool]:
        import sys

        return [{"pandas", "pyarrow", "mcspark.runtime.tasks.blocks"} <= sys.modules.keys()]

    assert engine_of(spark).on_partitions(imported, 2) == [True, True]


def test_local_tasks_of_this_python_are_the_drivers(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = spark.sparkContext
    monkeypatch.setattr(context, "pythonExec", sys.executable)
    assert workers.are_the_drivers(spark)
    monkeypatch.setattr(context, "master", "local-cluster[1,1,1024]")
    assert not workers.are_the_drivers(spark)


def test_another_environment_is_another_python_though_both_lead_to_one_file(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "bin" / "python"
    other.parent.mkdir()
    other.symlink_to(Path(sys.executable).resolve())
    for name in (str(other), str(tmp_path / "nowhere")):
        monkeypatch.setattr(spark.sparkContext, "pythonExec", name)
        assert not workers.are_the_drivers(spark)


def test_the_operators_daemon_stays(spark: SparkSession) -> None:
    conf = spark.sparkContext._jsc.sc().conf()
    before = conf.get(workers.DAEMON)
    assert before == DAEMON
    try:
        conf.set(workers.DAEMON, "pyspark.daemon")
        workers.fork_from(spark, DAEMON)
        assert conf.get(workers.DAEMON) == "pyspark.daemon"
    finally:
        conf.set(workers.DAEMON, before)

"""What an operator sees of a run: log lines for machines, the pages of Spark, the metrics table."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import structlog

from mcspark.pipelines.run import partition_of
from mcspark.pipelines.score import score
from mcspark.runtime.process.logs import configure_logs

from .conftest import DAY, configuration, start


@pytest.fixture
def run(spark, calibrated, tmp_path):
    model = {"path": calibrated.summary["paths"]["model"]}
    return start(spark, "score", configuration(calibrated.tables, tmp_path, model=model))


def test_every_stage_is_logged_for_machines(run, capsys):
    configure_logs("json", run_id=run.run_id)
    structlog.contextvars.bind_contextvars(partition=partition_of(run.config))
    capsys.readouterr()
    try:
        summary = score(run)
    finally:
        structlog.reset_defaults()
        structlog.contextvars.clear_contextvars()
    out, err = capsys.readouterr()
    assert out == ""
    lines = [json.loads(line) for line in err.splitlines()]
    assert {line["run_id"] for line in lines} == {run.run_id}
    assert {line["partition"] for line in lines} == {f"ds={DAY['ds']}"}
    ends = {line["stage"]: line for line in lines if line["event"] == "stage done"}
    assert {"model", "read", "check", "write"} <= set(ends)
    assert ends["check"]["rows"] == summary["rows"]["in"]
    assert ends["check"]["rejected"] == summary["rows"]["rejected"]
    assert ends["write"]["rows"] == summary["rows"]["scored"]
    for stage, line in ends.items():
        assert line["seconds"] == pytest.approx(run.seconds[stage], abs=1e-3)


def test_a_stage_that_fails_says_so(run, capsys):
    configure_logs("json", run_id=run.run_id)
    try:
        with pytest.raises(RuntimeError), run.stage("check", "check the rows"):
            raise RuntimeError
    finally:
        structlog.reset_defaults()
        structlog.contextvars.clear_contextvars()
    last = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert (last["event"], last["stage"]) == ("stage failed", "check")


def test_the_pages_of_spark_read_like_the_pipeline(spark, run):
    """Jobs are found by the group of their stage; what they are is their description."""
    context = spark.sparkContext
    context.setJobGroup("outer", "outer work")
    try:
        with run.stage("check", "check the rows and the keys"):
            assert context.getLocalProperty("spark.job.description") == "score: check the rows and the keys"
            spark.range(10).repartition(2).count()
        assert context.getLocalProperty("spark.jobGroup.id") == "outer"
    finally:
        for key in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            context.setLocalProperty(key, None)
    tracker = context.statusTracker()
    assert tracker.getJobIdsForGroup(f"{run.run_id} check")
    assert not tracker.getJobIdsForGroup("outer")


def test_one_row_for_each_run_split_stage_metric_group_and_grid(calibrated):
    place = calibrated.out / "calibrated_metrics"
    table = pd.read_parquet(place)
    key = ["run_id", "split", "stage", "metric", "group", "levels", "level"]
    assert not table.duplicated(key).any()
    assert {"mc_error", "ma_error", "noise_floor", "loss", "share", "group_mc_error"} <= set(table["metric"])
    grids = table.loc[table["metric"] == "group_mc_error"].groupby(["run_id", "stage"], observed=True)
    for _, rows in grids:
        assert len(rows) == rows["group"].nunique() * 2

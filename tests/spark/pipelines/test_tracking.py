"""A run in an MLflow store: what went in, what came out, and the files that go with it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from mlflow import MlflowClient

from mcspark.config import Config
from mcspark.errors import ConfigurationError
from mcspark.pipelines.publishing.tracking import check_tracking, track

from .conftest import DAY, configuration, start


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return (tmp_path / "mlruns").as_uri()


def test_parameters_metrics_report_and_model(spark, calibrated, tmp_path, store):
    report = tmp_path / "report.html"
    report.write_text("<p>the report")
    config = configuration(
        calibrated.tables, tmp_path / "out", tracking={"mlflow": store, "experiment": "nightly"},
        model={"path": calibrated.summary["paths"]["model"]},
    )  # fmt: skip
    run = start(spark, "calibrate", config)
    summary = calibrated.summary | {"paths": {**calibrated.summary["paths"], "report": str(report)}}
    track(run, summary)
    client = MlflowClient(tracking_uri=store)
    experiment = client.get_experiment_by_name("nightly")
    (found,) = client.search_runs([experiment.experiment_id])
    assert found.info.status == "FINISHED"
    assert (found.data.tags["run_id"], found.data.tags["partition"]) == (run.run_id, f"ds={DAY['ds']}")
    assert found.data.params["calibrator.learning_rate"] == "0.3"
    assert found.data.params["scored.path"] == config.scored.path
    for when in ("before", "after"):
        level = summary["metrics"][when]["by_level"]["20"]
        assert found.data.metrics[f"{when}.mc_error.20"] == level["mc_error"]
    assert found.data.metrics["rows.scored"] == summary["rows"]["scored"]
    folder = Path(client.download_artifacts(found.info.run_id, ""))
    names = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert {"report.html", "model/model.json", Path(summary["paths"]["manifest"]).name} <= names
    model = Path(summary["paths"]["model"]) / "model.json"
    assert (folder / "model" / "model.json").read_bytes() == model.read_bytes()
    track(run, summary)
    assert len(client.search_runs([experiment.experiment_id])) == 2


def test_a_store_that_fails_does_not_fail_the_run(spark, calibrated, tmp_path):
    (tmp_path / "file").write_text("")
    config = configuration(
        calibrated.tables, tmp_path / "out", tracking={"mlflow": (tmp_path / "file" / "x").as_uri()}
    )
    run = start(spark, "calibrate", config)
    track(run, calibrated.summary)
    assert "track" in run.seconds


def test_without_the_library_nothing_starts(calibrated, monkeypatch):
    plain = calibrated.config.to_plain() | {"tracking": {"mlflow": "file:///x"}}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"install mcspark\[mlflow\]"):
        check_tracking(Config.model_validate(plain))
    check_tracking(calibrated.config)

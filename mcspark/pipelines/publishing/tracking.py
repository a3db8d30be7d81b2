"""Runs in an MLflow tracking store: parameters, metrics, report, manifest and model of each.

The store is a record beside the manifests. A run that cannot be tracked has done its work all the same, so
that is a warning in its log and no failure.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

import structlog

from mcspark.config import Config, redact
from mcspark.errors import ConfigurationError
from mcspark.pipelines.run import Run
from mcspark.runtime.files.files import Files

log = structlog.get_logger(__name__)

ARTIFACTS = ("report", "manifest", "model")
"""Which of a run's paths are kept as artifacts; tables stay where they are."""

_MOST_AT_ONCE = 100
_LONGEST = 500


def check_tracking(config: Config) -> None:
    """Refuse, before anything runs, to track without the library.

    Raises
    ------
    ConfigurationError
        If MLflow is not installed.
    """
    if config.tracking.mlflow is not None and importlib.util.find_spec("mlflow") is None:
        raise ConfigurationError(
            "tracking.mlflow is set, but MLflow is not installed; install mcspark[mlflow], or leave it out"
        )


def track(run: Run, summary: Mapping[str, Any]) -> None:
    """Record a finished run, if the configuration names a store."""
    if run.config.tracking.mlflow is None:
        return
    try:
        with run.stage("track", "record the run in MLflow"):
            _record(run, summary, run.config.tracking.mlflow)
    except Exception as error:  # of any store, any network
        log.warning("the run could not be tracked", reason=str(redact(str(error))))


def _record(run: Run, summary: Mapping[str, Any], store: str) -> None:
    from mlflow import MlflowClient  # noqa: PLC0415  (an extra)
    from mlflow.entities import Metric, Param  # noqa: PLC0415

    client = MlflowClient(tracking_uri=store)
    name = run.config.tracking.experiment
    known = client.get_experiment_by_name(name)
    experiment = known.experiment_id if known else client.create_experiment(name)
    tags = {"job": run.job, "run_id": run.run_id, "status": str(summary["status"])}
    tags |= {"partition": run.partition} if run.partition else {}
    tracked = client.create_run(experiment, run_name=run.run_id, tags=tags).info.run_id
    ok = False
    try:
        at = int(datetime.now(timezone.utc).timestamp() * 1000)
        params = [Param(key, value[:_LONGEST]) for key, value in parameters(run.config)]
        metrics = [Metric(key, value, at, 0) for key, value in numbers(summary)]
        for start in range(0, max(len(params), len(metrics)), _MOST_AT_ONCE):
            part = slice(start, start + _MOST_AT_ONCE)
            client.log_batch(tracked, metrics=metrics[part], params=params[part])
        for kind in ARTIFACTS:
            if path := summary.get("paths", {}).get(kind):
                with tempfile.TemporaryDirectory() as folder:
                    Files(run.spark, path).copy_to_local(path, folder)
                    client.log_artifacts(tracked, folder)
        ok = True
    finally:
        client.set_terminated(tracked, "FINISHED" if ok else "FAILED")


def parameters(config: Config) -> Iterator[tuple[str, str]]:
    """Every key of the configuration by its dotted name, without secrets; lists keep one key."""
    yield from _flat("", config.redacted())


def _flat(above: str, plain: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in plain.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping):
            yield from _flat(f"{name}.", value)
        elif value is not None:
            yield name, str(value)


def numbers(summary: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The numbers of a summary line by names such as ``after.mc_error.20``.

    Those of several scores have the place of the score before them: ``score_0.after.loss``.
    """
    for name, value in summary.get("rows", {}).items():
        yield f"rows.{name}", float(value)
    for number, own in enumerate(summary.get("scores", {}).values()):
        yield from ((f"score_{number}.{name}", value) for name, value in numbers(own))
    for when, metrics in summary.get("metrics", {}).items():
        for name, value in metrics.items():
            if isinstance(value, (int, float)):
                yield f"{when}.{name}", float(value)
        for m, errors in metrics.get("by_level", {}).items():
            for name, value in errors.items():
                if isinstance(value, (int, float)):
                    yield f"{when}.{name}.{m}", float(value)
    for name in ("score_distance", "share_change"):
        value = summary.get("drift", {}).get(name)
        if value is not None:
            yield f"drift.{name}", float(value)

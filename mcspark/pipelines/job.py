"""A job from its command to its exit code: configuration, session, work, summary line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import structlog
from pyspark.sql import SparkSession

from mcspark.config import Config, redact
from mcspark.errors import GateError, McsparkError
from mcspark.pipelines.record import failed_run
from mcspark.pipelines.run import Run, partition_of
from mcspark.pipelines.tracking import check_tracking, track
from mcspark.runtime.failures import explained, reason_of
from mcspark.runtime.features import features_of
from mcspark.runtime.preflight import check_executors, check_lightgbm
from mcspark.runtime.session import finish, spark_session

log = structlog.get_logger(__name__)


def run_job(
    job: str,
    run_id: str,
    load: Callable[[], Config],
    body: Callable[[Run], Mapping[str, Any]],
    *,
    engine: Callable[[Config], str | None] | None = None,
    prepare: Callable[[SparkSession, Config], None] | None = None,
    settings: Mapping[str, str] | None = None,
) -> NoReturn:
    """Run a job to its end: the summary is the last line of stdout, the process ends with its exit code.

    Parameters
    ----------
    job, run_id : str
    load : callable
        Reads the configuration; runs before any JVM is started.
    body : callable
        Does the work and returns the summary.
    engine : callable, optional
        What is to train in a job of this configuration, see :func:`mcspark.runtime.session.spark_session`.
    prepare : callable, optional
        Makes the input, for the default run.
    settings : mapping, optional
        Of Spark, for a job that is its own operator.
    """
    spark: SparkSession | None = None
    run: Run | None = None
    try:
        config = load()
        if partition := partition_of(config):
            structlog.contextvars.bind_contextvars(partition=partition)
        check_tracking(config)
        trains = engine(config) if engine else None
        spark = spark_session(f"mcspark {job}", settings, engine=trains, features=features_of(config))
        run = Run(job, run_id, config, spark)
        check_executors(spark)
        if trains == "synapseml":  # nothing steps in for it
            check_lightgbm(spark)
        if prepare:
            prepare(spark, config)
        start = time.monotonic()
        summary = dict(body(run))
        track(run, summary)
        summary["seconds"] = {**run.seconds, "total": round(time.monotonic() - start, 3)}
        run = None  # it has its manifest
        print(json.dumps(redact(summary), allow_nan=False), flush=True)  # noqa: T201  (the contract of every job)
        code = 0
    except McsparkError as error:
        paths = error.paths if isinstance(error, GateError) else {}
        code = _report(job, run_id, error.status, str(error), error.exit_code, run, paths)
    except KeyboardInterrupt:
        code = _report(job, run_id, "error", "interrupted", 1, run)
    except Exception as error:
        log.exception("unexpected error")
        known = explained(error)
        if known is not None:
            code = _report(job, run_id, known.status, str(known), known.exit_code, run)
        else:
            what = f"{type(error).__name__}: {reason_of(error)}"
            code = _report(job, run_id, "error", what, 1, run)
    finish(spark, code)


def _report(
    job: str, run_id: str, status: str, message: str, code: int, run: Run | None,
    paths: Mapping[str, str] | None = None,
) -> int:  # fmt: skip
    message = str(redact(message))
    print(f"mcspark {job}: {message}", file=sys.stderr, flush=True)  # noqa: T201
    if run is not None and not run.is_recorded:
        _record(run, status, message, code)
    line = {"status": status, "run_id": run_id, "error": message, "exit_code": code}
    line |= {"paths": redact(dict(paths))} if paths else {}
    print(json.dumps(line), flush=True)  # noqa: T201
    return code


def _record(run: Run, status: str, message: str, code: int) -> None:
    """Leave the end of a failed run in a manifest: in a cluster's own mode nobody sees the exit code."""
    try:
        failed_run(run, status, message, code)
    except Exception as error:
        log.warning("this failure could not be recorded in a manifest", reason=_first_line(error))


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__

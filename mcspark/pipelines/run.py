"""One run of a job: its id, its clock, its stages, and how it ends."""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, NoReturn

import structlog
from pyspark.sql import SparkSession

from mcspark.config import Config, redact
from mcspark.errors import GateError, McsparkError
from mcspark.ml import driver_training
from mcspark.pipelines.tracking import check_tracking, track
from mcspark.runtime.failures import explained, reason_of
from mcspark.runtime.formats import features_of
from mcspark.runtime.preflight import check_executors, check_lightgbm
from mcspark.runtime.session import finish, spark_session

log = structlog.get_logger(__name__)

_JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


@dataclass
class Run:
    """What a job needs to know about itself.

    Parameters
    ----------
    job : str
    run_id : str
    config : Config
    spark : SparkSession
    seconds : dict of str to float
        Wall clock of each stage, filled by :meth:`stage`.
    is_recorded : bool
        Whether the manifest of a run that fails is written already.
    """

    job: str
    run_id: str
    config: Config
    spark: SparkSession
    seconds: dict[str, float] = field(default_factory=dict)
    is_recorded: bool = False

    @property
    def partition(self) -> str | None:
        """The partition that the run is about, as its folder is called."""
        return partition_of(self.config)

    @contextmanager
    def stage(self, name: str, what: str) -> Iterator[dict[str, int]]:
        """Time a stage, log it, and name its Spark jobs so that Spark's pages read like the pipeline.

        Yields a mapping for what the line at its end shall tell, such as ``rows``.
        """
        start = time.monotonic()
        told: dict[str, int] = {}
        context = self.spark.sparkContext
        before = {key: context.getLocalProperty(key) for key in _JOB_PROPERTIES}
        context.setJobGroup(f"{self.run_id} {name}", f"{self.job}: {what}")
        with structlog.contextvars.bound_contextvars(stage=name):
            log.info(what)
            outcome = "stage failed"
            try:
                yield told
                outcome = "stage done"
            finally:
                for key, value in before.items():
                    context.setLocalProperty(key, value)  # type: ignore[arg-type]  # None removes it
                seconds = round(time.monotonic() - start, 3)
                self.seconds[name] = round(self.seconds.get(name, 0.0) + seconds, 3)
                log.info(outcome, seconds=seconds, **told)


def partition_of(config: Config) -> str | None:
    """The partition that a run is about, as its folder is called: ``ds=2026-11-26``."""
    tables = [config.output, config.scored]
    partition = next((table.partition for table in tables if table and table.partition), None)
    return "/".join(f"{key}={value}" for key, value in partition.items()) if partition else None


def new_run_id(job: str) -> str:
    """A run id that sorts by time: ``calibrate-20261127T231501Z-1a2b3c4d``."""
    now = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    return f"{job}-{now}-{uuid.uuid4().hex[:8]}"


def run_job(
    job: str,
    run_id: str,
    load: Callable[[], Config],
    body: Callable[[Run], Mapping[str, Any]],
    *,
    needs_lightgbm: bool | Callable[[Config], bool] = False,
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
    needs_lightgbm : bool or callable
        Whether SynapseML trains in this job, or in one of this configuration.
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
        lightgbm = needs_lightgbm(config) if callable(needs_lightgbm) else needs_lightgbm
        spark = spark_session(
            f"mcspark {job}", settings, needs_lightgbm=lightgbm, features=features_of(config)
        )
        run = Run(job, run_id, config, spark)
        check_executors(spark)
        if lightgbm and driver_training.engine() is None:
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
    from mcspark.pipelines.publishing import failed_run  # noqa: PLC0415  (it builds on this module)

    try:
        failed_run(run, status, message, code)
    except Exception as error:
        log.warning("this failure could not be recorded in a manifest", reason=_first_line(error))


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__

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
from mcspark.errors import McsparkError
from mcspark.runtime.failures import explained
from mcspark.runtime.preflight import check_executors
from mcspark.runtime.session import finish, spark_session

log = structlog.get_logger(__name__)


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
    """

    job: str
    run_id: str
    config: Config
    spark: SparkSession
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str, what: str) -> Iterator[None]:
        """Time a stage, log it, and name its Spark jobs so that Spark's pages read like the pipeline."""
        start = time.monotonic()
        self.spark.sparkContext.setJobDescription(f"{self.job}: {what}")
        log.info(what, stage=name)
        try:
            yield
        finally:
            self.spark.sparkContext.setJobDescription(None)  # type: ignore[arg-type]  # None removes it
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - start, 3)


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
    try:
        config = load()
        lightgbm = needs_lightgbm(config) if callable(needs_lightgbm) else needs_lightgbm
        spark = spark_session(f"mcspark {job}", settings, needs_lightgbm=lightgbm)
        check_executors(spark)
        if prepare:
            prepare(spark, config)
        run = Run(job, run_id, config, spark)
        start = time.monotonic()
        summary = dict(body(run))
        summary["seconds"] = {**run.seconds, "total": round(time.monotonic() - start, 3)}
        print(json.dumps(summary, allow_nan=False), flush=True)  # noqa: T201  (the contract of every job)
        code = 0
    except McsparkError as error:
        code = _report(job, run_id, error.status, str(error), error.exit_code)
    except KeyboardInterrupt:
        code = _report(job, run_id, "error", "interrupted", 1)
    except Exception as error:
        log.exception("unexpected error")
        known = explained(error)
        if known is not None:
            code = _report(job, run_id, known.status, str(known), known.exit_code)
        else:
            code = _report(job, run_id, "error", f"{type(error).__name__}: {_first_line(error)}", 1)
    finish(spark, code)


def _report(job: str, run_id: str, status: str, message: str, code: int) -> int:
    message = str(redact(message))
    print(f"mcspark {job}: {message}", file=sys.stderr, flush=True)  # noqa: T201
    line = {"status": status, "run_id": run_id, "error": message, "exit_code": code}
    print(json.dumps(line), flush=True)  # noqa: T201
    return code


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__

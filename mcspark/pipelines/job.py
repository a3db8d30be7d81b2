"""A job from its command to its exit code: configuration, session, work, summary line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import structlog
from pyspark.sql import SparkSession

from mcspark.config import Config, redact
from mcspark.engine.choice import engine_of
from mcspark.errors import GateError, McsparkError
from mcspark.pipelines.publishing.record import failed_run
from mcspark.pipelines.publishing.tracking import check_tracking, track
from mcspark.pipelines.reading.input_state import input_state
from mcspark.pipelines.run import Run, partition_of
from mcspark.runtime.features import features_of
from mcspark.runtime.process.failures import explained, reason_of
from mcspark.runtime.remote import check_shared
from mcspark.runtime.session import finish, spark_session
from mcspark.runtime.tasks.preflight import check_executors, check_lightgbm

log = structlog.get_logger(__name__)

Body = Callable[[Run], Mapping[str, Any]]
ChooseEngine = Callable[[Config], str | None]


def run_job(
    job: str,
    run_id: str,
    load: Callable[[], Config],
    body: Body,
    *,
    engine: ChooseEngine | None = None,
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
    attempt = Attempt(job, run_id)

    def work() -> dict[str, Any]:
        config = load()
        if partition := partition_of(config):
            structlog.contextvars.bind_contextvars(partition=partition)
        spark = attempt.started([config], engine, settings)
        run = attempt.run = Run(job, run_id, config, spark)
        check_platform(spark, engine(config) if engine else None)
        if prepare:
            prepare(spark, config)
        return attempt.performed(run, body)

    attempt.ended(work)
    attempt.close()


def check_platform(spark: SparkSession, trains: str | None) -> None:
    """Refuse executors, or a trainer that nothing steps in for, with which the job could not end well."""
    check_executors(spark)
    if trains == "synapseml":
        check_lightgbm(spark)


@dataclass
class Attempt:
    """A run on its way to its summary line and its exit code.

    Parameters
    ----------
    job, run_id : str
    spark : SparkSession, optional
    run : Run, optional
        While its end is not in a manifest.
    exit_code : int
    interrupted : bool
        Whether somebody at the keyboard has ended it.
    """

    job: str
    run_id: str
    spark: SparkSession | None = None
    run: Run | None = None
    exit_code: int = 0
    interrupted: bool = False

    def started(
        self,
        configs: Sequence[Config],
        engine: ChooseEngine | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> SparkSession:
        """The session for runs of these configurations, which differ in their partition alone."""
        for config in configs:
            check_tracking(config)
        trains = engine(configs[0]) if engine else None
        features = dict.fromkeys(name for config in configs for name in features_of(config))
        self.spark = spark_session(f"mcspark {self.job}", settings, engine=trains, features=tuple(features))
        return self.spark

    def close(self) -> NoReturn:
        """End the process."""
        finish(self.spark, self.exit_code)

    def performed(self, run: Run, body: Body) -> dict[str, Any]:
        """Do the work of a run; returns its summary."""
        self.run = run
        start = time.monotonic()
        if engine_of(run.spark).is_remote:
            check_shared(run.spark, _written_by_spark(run))
        run.inputs = input_state(run)
        summary = dict(body(run))
        track(run, summary)
        summary["seconds"] = {**run.seconds, "total": round(time.monotonic() - start, 3)}
        self.run = None  # it has its manifest
        return summary

    def ended(self, work: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Run it, whatever comes of it, and print its last line; returns that line.

        An ``exit_code`` of the summary is that of the run.
        """
        try:
            line: dict[str, Any] = redact(dict(work()))
            self.exit_code = int(line.get("exit_code", 0))
            print(json.dumps(line, allow_nan=False), flush=True)  # noqa: T201  (the contract of every job)
        except McsparkError as error:
            paths = error.paths if isinstance(error, GateError) else {}
            line = self._failed(error.status, str(error), error.exit_code, paths)
        except KeyboardInterrupt:
            self.interrupted = True
            line = self._failed("error", "interrupted", 1)
        except Exception as error:
            log.exception("unexpected error")
            known = explained(error)
            if known is not None:
                line = self._failed(known.status, str(known), known.exit_code)
            else:
                line = self._failed("error", f"{type(error).__name__}: {reason_of(error)}", 1)
        return line

    def _failed(
        self, status: str, message: str, code: int, paths: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        message = str(redact(message))
        print(f"mcspark {self.job}: {message}", file=sys.stderr, flush=True)  # noqa: T201
        if self.run is not None and not self.run.is_recorded:
            _record(self.run, status, message, code)
        line = {"status": status, "run_id": self.run_id, "error": message, "exit_code": code}
        line |= {"paths": redact(dict(paths))} if paths else {}
        print(json.dumps(line), flush=True)  # noqa: T201
        self.exit_code = code
        return line


def _written_by_spark(run: Run) -> list[str]:
    """Folders that Spark fills for this run, before they are looked at here."""
    config = run.config
    learns, writes = run.job == "calibrate", run.job in ("calibrate", "score", "audit")
    places = [config.output if writes else None, *((config.model, config.cells) if learns else ())]
    return [place.path for place in places if place is not None and place.path]


def _record(run: Run, status: str, message: str, code: int) -> None:
    """Leave the end of a failed run in a manifest: in a cluster's own mode nobody sees the exit code."""
    try:
        failed_run(run, status, message, code)
    except Exception as error:
        log.warning("this failure could not be recorded in a manifest", reason=_first_line(error))


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__

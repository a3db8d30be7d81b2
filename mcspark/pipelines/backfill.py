"""A job over many days: one session, one run a day, each published by itself; what is published stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from typing import Any, NoReturn

import structlog

from mcspark.config import Config
from mcspark.engine.choice import engine_of
from mcspark.errors import ConfigurationError, McsparkError
from mcspark.identifiers import day_like, day_of
from mcspark.pipelines.job import Attempt, Body, ChooseEngine, check_platform
from mcspark.pipelines.publishing.published import published_by
from mcspark.pipelines.reading.input_state import input_state
from mcspark.pipelines.run import Run, new_run_id, partition_of

log = structlog.get_logger(__name__)

WORST_FIRST = (1, 2, 3, 4, 5, 75)
"""Exit codes of days, of which the first that occurred is that of the whole: 75 only where all may pass."""

MAX_DAYS = 10_000
_RECENT = 10

Load = Callable[[str], Config]


def days_between(first: str, last: str) -> list[str]:
    """The days from the first to the last, both included, as they are written: 2026-08-01 or 20260801.

    Raises
    ------
    ConfigurationError
        If one is no date, they are written in two ways, the last is before the first, or they are too many.
    """
    start, end = _date("--from", first), _date("--to", last)
    if len(first) != len(last):
        raise ConfigurationError(f"--from {first} --to {last}: write both dates in the same way")
    count = (end - start).days + 1
    if count < 1:
        raise ConfigurationError(f"--from {first} is after --to {last}; give the earlier day first")
    if count > MAX_DAYS:
        raise ConfigurationError(f"--from {first} --to {last}: {count:,} days, of at most {MAX_DAYS:,}")
    return [day_like(start + timedelta(days=i), first) for i in range(count)]


def _date(option: str, text: str) -> date:
    try:
        return day_of(text)
    except ValueError as error:
        raise ConfigurationError(f"{option} {text!r} {error}") from None


def overrides_of(day: str, key: str, given: Sequence[str]) -> list[str]:
    """What ``--set`` says on a day.

    Parameters
    ----------
    day : str
    key : str
        The partition column, such as ``ds``.
    given : sequence of str
        As given for the whole; ``{ds}`` stands for the day. A key of ``scored`` that names the day so chooses
        the rows of the day; otherwise its partition does.
    """
    mark = f"{{{key}}}"
    chosen = any(one.startswith("scored.") and mark in one for one in given)
    days = [f"output.partition.{key}='{day}'"] + ([] if chosen else [f"scored.partition.{key}='{day}'"])
    return [*(one.replace(mark, day) for one in given), *days]


@dataclass
class Tally:
    """How the days have ended.

    Parameters
    ----------
    job, run_id : str
    days : int
        All of them.
    """

    job: str
    run_id: str
    days: int
    kept: list[str] = field(default_factory=list)
    published: list[str] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    took: list[float] = field(default_factory=list)

    def add(self, partition: str, attempt: Attempt, line: Mapping[str, Any], seconds: float) -> None:
        """A day has been run."""
        self.took.append(seconds)
        if attempt.exit_code == 0:
            self.published.append(partition)
        else:
            reported = {key: line[key] for key in ("status", "error", "exit_code", "run_id")}
            self.failed.append({"partition": partition, **reported})
        log.info(
            "day done" if attempt.exit_code == 0 else "day failed", day=partition, done=len(self.took),
            of=self.days - len(self.kept), seconds=round(seconds, 1), left=duration(self.left),
        )  # fmt: skip

    @property
    def not_run(self) -> int:
        """Days that were not come to."""
        return self.days - len(self.kept) - len(self.published) - len(self.failed)

    @property
    def left(self) -> float:
        """Seconds that the days not yet run take, if they are like the last ones."""
        recent = self.took[-_RECENT:]
        return self.not_run * sum(recent) / len(recent) if recent else 0.0

    def summary(self) -> dict[str, Any]:
        """The last line."""
        codes = {one["exit_code"] for one in self.failed}
        code = next((code for code in WORST_FIRST if code in codes), 0)
        worst = next((one for one in self.failed if one["exit_code"] == code), None)
        line: dict[str, Any] = {
            "status": worst["status"] if worst else "ok",
            "run_id": self.run_id,
            "job": self.job,
            "days": {
                "all": self.days, "published": len(self.published), "kept": len(self.kept),
                "failed": len(self.failed), "not_run": self.not_run,
            },
            "failed": self.failed,
            "seconds": {"total": round(time.monotonic() - self.began, 3)},
        }  # fmt: skip
        if worst:
            line["error"] = self._words(worst)
            line["exit_code"] = code
        return line

    def _words(self, worst: Mapping[str, Any]) -> str:
        rest = f", and {self.not_run} were not come to" if self.not_run else ""
        return (
            f"{len(self.failed)} of {self.days} days failed{rest}, such as {worst['partition']} (exit code "
            f"{worst['exit_code']}: {worst['error']}); mend them and run the same command again: "
            "published days stay as they are"
        )


def duration(seconds: float) -> str:
    """``2 h 05 min``, ``12 min`` or ``40 s``."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min" if minutes else f"{whole} s"


def backfill(
    job: str,
    run_id: str,
    days: Callable[[], Sequence[str]],
    load: Load,
    body: Body,
    *,
    engine: ChooseEngine | None = None,
    again: bool = False,
) -> NoReturn:
    """Run a job for one day after the other, and end the process with the worst of their exit codes.

    Each day ends as the job by itself would: with a summary line, a manifest and its own messages. A day
    that fails stops no other one, unless the session is gone or somebody interrupts. The last line of stdout
    counts the days and lists those that failed.

    Parameters
    ----------
    job : str
        ``calibrate``, ``score`` or ``audit``.
    run_id : str
        Of the backfill.
    days : callable
        The days; ``ConfigurationError`` if there are none.
    load : callable
        The configuration of a day. All are read before any JVM is started.
    body : callable
        The work of the job.
    engine : callable, optional
        As of :func:`mcspark.pipelines.job.run_job`.
    again : bool
        Run days again that are published by the same configuration from the same input.
    """
    whole = Attempt(f"backfill of {job}", run_id)

    def work() -> dict[str, Any]:
        configs = [load(day) for day in days()]
        spark = whole.started(configs, engine)
        check_platform(spark, engine(configs[0]) if engine else None)
        tally = Tally(job, run_id, len(configs))
        known: dict[str, str | None] = {}
        runs = [Run(job, run_id, config, spark, states=known) for config in configs]
        for config in _to_do(runs, tally, again=again):
            run = Run(job, new_run_id(job), config, spark)
            attempt, start = Attempt(job, run.run_id, spark), time.monotonic()
            where = {"run_id": run.run_id, "partition": run.partition}
            with structlog.contextvars.bound_contextvars(**where):
                line = attempt.ended(partial(attempt.performed, run, body))
            tally.add(str(run.partition), attempt, line, time.monotonic() - start)
            if attempt.interrupted or not engine_of(spark).is_alive():
                break
        for failed in tally.failed:
            log.error("a day failed", **failed)
        return tally.summary()

    whole.ended(work)
    whole.close()


def _to_do(runs: Sequence[Run], tally: Tally, *, again: bool) -> list[Config]:
    """The configurations of the days that are not published yet."""
    todo: list[Config] = []
    for run in runs:
        run.inputs = {} if again else input_state(run)
        by = None if again else _published_by(run)
        if by is None:
            todo.append(run.config)
        else:
            tally.kept.append(str(partition_of(run.config)))
    log.info("days to run", days=len(runs), kept=len(tally.kept), to_run=len(todo))
    return todo


def _published_by(run: Run) -> str | None:
    try:
        return published_by(run)
    except McsparkError:
        return None  # its run will meet the same, and say so in its manifest

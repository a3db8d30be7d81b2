"""The page of all runs: one HTML file that needs no script, in the form of a run's report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from mcspark.report.facts import number
from mcspark.report.history.job_history import JobHistory, by_job
from mcspark.report.history.limits import LEAST, RULE, Alarm
from mcspark.report.history.past_run import PastRun
from mcspark.report.page import environment

TITLE = "Calibration history"

MAX_ROWS, MAX_ALARMS, MAX_SKIPPED = 1_000, 200, 50
"""Runs in a table, alarms and files that were left out in a list; the newest."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class History:
    """What the page and the text say.

    Parameters
    ----------
    runs : sequence of PastRun
    skipped : sequence of (str, str)
        Files that are no readable manifests, and why.
    """

    runs: Sequence[PastRun]
    skipped: Sequence[tuple[str, str]] = ()
    jobs: Sequence[JobHistory] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "jobs", by_job(self.runs))

    @property
    def alarms(self) -> list[Alarm]:
        """Of all jobs, in the order of the runs."""
        return sorted((a for job in self.jobs for a in job.alarms), key=lambda alarm: alarm.run.order)

    @property
    def open_alarms(self) -> list[Alarm]:
        """Alarms of the last run of each job."""
        return [alarm for job in self.jobs if job.counted for alarm in job.alarms_at(job.counted[-1])]

    @property
    def failed(self) -> list[PastRun]:
        """Runs that did not end well, and that no later one has made good."""
        return [run for job in self.jobs for run in job.failed]

    @property
    def standing(self) -> str:
        """The tone of the verdict."""
        if not any(job.counted for job in self.jobs):
            return "unknown"
        return "no" if self.open_alarms else "better" if self.failed else "yes"

    @property
    def verdict(self) -> tuple[str, str]:
        """The answer, and the rest of the sentence."""
        every = f"{len(self.runs)} run{'s' if len(self.runs) != 1 else ''}"
        word = "was" if len(self.failed) == 1 else "were"
        failed = f"; {len(self.failed)} did not end well and {word} not run again" if self.failed else ""
        if self.standing == "unknown":
            return "There is nothing to judge", f": of {every} none has results{failed}."
        if self.open_alarms:
            found = ", ".join(
                f"{a.measure.name} of {a.run.label} ({a.run.subject})" for a in self.open_alarms[:5]
            )
            more = f" and {len(self.open_alarms) - 5} more" if len(self.open_alarms) > 5 else ""
            return "Look at the last run", f": out of the ordinary are {found}{more}; {every} in all{failed}."
        judged = max(len(job.counted) for job in self.jobs) > LEAST
        said = "Nothing in the last run is out of the ordinary" if judged else "Too few runs for limits"
        return said, f": {every}{failed}."


def render_history(history: History) -> str:
    """The page."""
    drawn: dict[str, list[Any]] = {}
    trouble = None
    try:
        from mcspark.report.history.pictures import pictures  # noqa: PLC0415  (slow to import)

        drawn = {job.job: pictures(job, i) for i, job in enumerate(history.jobs)}
    except Exception as error:
        log.exception("the pictures could not be drawn")
        trouble = str(error)
    return (
        environment()
        .get_template("history.html.j2")
        .render(
            title=TITLE,
            history=history,
            pictures=drawn,
            trouble=trouble,
            rule=RULE,
            limit_words=limit_words,
            interval=interval,
            most=MAX_ROWS,
            most_alarms=MAX_ALARMS,
            most_skipped=MAX_SKIPPED,
        )
    )


def limit_words(alarm: Alarm) -> str:
    """``above 0.0123``, with the limit that was exceeded."""
    low, high = alarm.limits.low, alarm.limits.high
    if high is not None and alarm.value > high:
        return f"above {alarm.measure.shown(high)}"
    return f"below {alarm.measure.shown(low)}"


def interval(run: PastRun) -> str:
    """``0.0012 to 0.0063``."""
    low, high = run.interval
    return number(None) if high is None else f"{number(low)} to {number(high)}"

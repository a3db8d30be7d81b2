"""The runs of one job, in order: which of them count, what they measured, and which stand out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mcspark.core.cells.readable import readable_names
from mcspark.report.history.limits import MEASURES, Alarm, Measure, alarms_of, limits_of, share_of
from mcspark.report.history.past_run import PastRun, changes
from mcspark.report.names import families_of

MAX_GROUPS = 6
"""Groups whose shares are followed: those that moved most."""


@dataclass(frozen=True)
class JobHistory:
    """The runs of one job, and of one score where they are of several.

    Parameters
    ----------
    job : str
        The job, and the score.
    runs : sequence of PastRun
        All of them, in their order.
    """

    job: str
    runs: Sequence[PastRun]

    @cached_property
    def counted(self) -> list[PastRun]:
        """The runs that have results, but for those whose partition was run again later."""
        found = [run for run in self.runs if run.has_results]
        last = {run.partition or run.run_id: run for run in found}
        return [run for run in found if last[run.partition or run.run_id] is run]

    @cached_property
    def groups(self) -> list[str]:
        """The groups whose shares moved most."""
        shares: dict[str, list[float]] = {}
        for run in self.counted:
            for group, share in run.shares.items():
                shares.setdefault(group, []).append(share)
        moved = {group: max(found) - min(found) for group, found in shares.items()}
        return sorted(moved, key=lambda group: (-moved[group], group))[:MAX_GROUPS]

    @cached_property
    def words(self) -> dict[str, str]:
        """What people read for these groups, by the configuration of the last run that tells it."""
        of_runs = (families_of(run.manifest.get("configuration")) for run in reversed(self.counted))
        return readable_names(next(filter(None, of_runs), ()), self.groups)

    @cached_property
    def measures(self) -> list[Measure]:
        """What the runs have values of."""
        every = [*MEASURES, *(share_of(group, self.words[group]) for group in self.groups)]
        return [m for m in every if any(m.of(run) is not None for run in self.counted)]

    @cached_property
    def alarms(self) -> list[Alarm]:
        """What is out of the ordinary."""
        return alarms_of(self.counted, self.measures)

    @cached_property
    def error_names(self) -> list[str]:
        """What the runs led with."""
        return sorted({run.error_name for run in self.counted} - {""})

    @cached_property
    def failed(self) -> list[PastRun]:
        """The runs that did not end well, and whose partition no later run has ended well."""
        last = {run.partition: run for run in self.runs}
        return [run for run in self.runs if run.status != "ok" and last[run.partition] is run]

    @cached_property
    def changes(self) -> list[tuple[PastRun, list[str]]]:
        """Runs before which settings, versions or the model have changed, and how."""
        pairs = zip(self.counted, self.counted[1:], strict=False)
        return [(now, reported) for before, now in pairs if (reported := changes(before, now))]

    def limits(self, measure: Measure) -> list[tuple[float | None, float | None] | None]:
        """Lower and upper limit of each run that counts; None for runs without."""
        found = limits_of([measure.of(run) for run in self.counted], measure.bad, measure.width)
        return [None if limit is None else (limit.low, limit.high) for limit in found]

    def alarms_at(self, run: PastRun) -> list[Alarm]:
        """Alarms of one run."""
        return [alarm for alarm in self.alarms if alarm.run is run]


def by_job(runs: Sequence[PastRun]) -> list[JobHistory]:
    """The runs of each job and score, in their order; a run that was found twice counts once."""
    once = {(run.run_id, run.score): run for run in runs}
    jobs: dict[str, list[PastRun]] = {}
    for run in sorted(once.values(), key=lambda run: run.order):
        jobs.setdefault(run.subject, []).append(run)
    return [JobHistory(job, found) for job, found in sorted(jobs.items())]

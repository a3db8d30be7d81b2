"""The pictures of a job's runs, each with words for those who cannot see it."""

from __future__ import annotations

from matplotlib.figure import Figure

from mcspark.report.history.job_history import JobHistory
from mcspark.report.history.limits import MEASURES, Measure
from mcspark.report.plots.history import error_by_run, measure_by_run, shares_by_run
from mcspark.report.svg import Picture, picture

MAX_RUNS = 400
"""Runs in a picture: the last ones."""


def pictures(job: JobHistory, place: int) -> list[Picture]:
    """One of each measure that varies, and one of the shares of groups; none of fewer than two runs."""
    if len(job.counted) < 2:
        return []
    found = []
    for measure in job.measures:
        if measure in MEASURES:
            values = [measure.of(run) for run in job.counted][-MAX_RUNS:]
            if measure.key != "error" and len({value for value in values if value is not None}) < 2:
                continue  # the table says it
            found.append(
                picture(
                    _figure(job, measure), f"{measure.key.replace('_', '-')}-{place}", _words(job, measure)
                )
            )
    if job.groups:
        labels = [run.label for run in job.counted][-MAX_RUNS:]
        shares = {job.words[g]: [run.shares.get(g) for run in job.counted][-MAX_RUNS:] for g in job.groups}
        words = (
            f"Line chart of the shares of {len(shares)} groups among the held-out rows of {len(labels)} runs "
            f"of {job.job}."
        )
        found.append(picture(shares_by_run(labels, shares), f"shares-{place}", words))
    return found


def _figure(job: JobHistory, measure: Measure) -> Figure:
    runs = job.counted[-MAX_RUNS:]
    labels = [run.label for run in runs]
    values = [measure.of(run) for run in runs]
    limits = job.limits(measure)[-MAX_RUNS:]
    out = [i for i, run in enumerate(runs) if any(a.measure is measure for a in job.alarms_at(run))]
    if measure.key != "error":
        return measure_by_run(labels, values, limits, out, measure.name)
    ends = [run.interval for run in runs]
    return error_by_run(
        labels, values, [run.number("lead", "noise_floor") for run in runs],
        ([low for low, _ in ends], [high for _, high in ends]),
        [run.number("lead", "before") if run.stage == "after" else None for run in runs],
        limits, out, job.error_names[0] if len(job.error_names) == 1 else "error",
    )  # fmt: skip


def _words(job: JobHistory, measure: Measure) -> str:
    known = [(run, value) for run in job.counted[-MAX_RUNS:] if (value := measure.of(run)) is not None]
    (first, start), (last, end) = known[0], known[-1]
    values = [value for _, value in known]
    out = sum(alarm.measure is measure for alarm in job.alarms)
    return (
        f"Line chart of the {measure.name} of {len(known)} runs of {job.job}, from {measure.shown(start)} "
        f"in {first.label} to {measure.shown(end)} in {last.label}, between "
        f"{measure.shown(min(values))} and {measure.shown(max(values))}; {out} out of the ordinary."
    )

"""What is out of the ordinary: a value beyond the limits that the runs before it set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mcspark.core.cells.levels import FloatArray
from mcspark.report.facts import MISSING, number
from mcspark.report.history.past_run import PastRun

LEAST, MOST = 8, 60
"""Runs before a run without which it has no limits, and how many of the last ones are looked at."""

WIDTH, WIDTH_OF_MANY = 3.0, 5.0
"""Robust standard deviations to a limit; of a thing of which there are many, such as groups."""

_MAD = 1.4826
"""A normal distribution has so many median absolute deviations in a standard deviation."""

_ROUNDING = 1e-9

_FEW = 6
"""The deviation of n values is uncertain: limits are 1 + 6/n times as wide. Of values that vary by chance, as
a normal distribution does, fewer than 1 in 100 are beyond one then, whatever n is."""

RULE = (
    f"A value is out of the ordinary if it is further than {WIDTH:g} · (1 + {_FEW}/n) robust standard "
    "deviations from the median of the n runs of the same job before it: those that have the value, at most "
    f"the last {MOST}. A robust standard deviation is 1.4826 times the median absolute deviation, or the "
    f"plain one where that is 0. For the share of a group it is {WIDTH_OF_MANY:g} instead of {WIDTH:g}, for "
    f"there are many groups. With fewer than {LEAST} runs before it a run has no limits; a run that failed, "
    "or whose partition was run again later, sets none."
)
"""In words."""

Side = Literal["high", "low", "both"]


@dataclass(frozen=True)
class Measure:
    """Something that is followed from run to run.

    Attributes
    ----------
    key, name : str
    of : callable
    bad : {'high', 'low', 'both'}
        On which side of the limits a value is out of the ordinary.
    width : float
    """

    key: str
    name: str
    of: Callable[[PastRun], float | None]
    bad: Side = "high"
    width: float = WIDTH

    def shown(self, value: float | None) -> str:
        """A value as people read it."""
        if value is None:
            return MISSING
        if self.key == "rows":
            return f"{value:,.0f}"
        if self.key == "seconds":
            return f"{value:,.1f}"
        if self.key == "rejected" or self.width == WIDTH_OF_MANY:
            return f"{100 * value:.2f} %"
        return number(value)


@dataclass(frozen=True)
class Limits:
    """The limits of one run; None on the side that is not bad."""

    low: float | None
    high: float | None

    def exceeded_by(self, value: float) -> bool:
        """Whether the value is out of the ordinary."""
        return (self.low is not None and value < self.low) or (self.high is not None and value > self.high)


@dataclass(frozen=True)
class Alarm:
    """A value out of the ordinary."""

    run: PastRun
    measure: Measure
    value: float
    limits: Limits


MEASURES = (
    Measure("error", "error that is led with", lambda run: run.number("lead", run.stage)),
    Measure("smece", "worst group's smECE", lambda run: run.metric("worst_group_smece")),
    Measure("loss", "squared loss", lambda run: run.metric("loss")),
    Measure("auc", "AUC", lambda run: run.metric("auc"), "low"),
    Measure("mean_score", "mean score that came in", lambda run: run.means[0], "both"),
    Measure("mean_label", "mean label", lambda run: run.means[1], "both"),
    Measure("distance", "drift: distance of the scores", lambda run: run.number("drift", "score_distance")),
    Measure("rows", "rows that came in", lambda run: run.number("rows", "in"), "both"),
    Measure("rejected", "share of rejected rows", lambda run: run.rejected_share),
    Measure("seconds", "seconds", lambda run: run.seconds),
)
"""What every run is followed by, beside the shares of its groups."""


def share_of(group: str, words: str) -> Measure:
    """The share of a group, which people call by other words than its id."""
    return Measure(
        f"share of {group}", f"share of {words}", lambda run: run.shares.get(group), "both", WIDTH_OF_MANY
    )


def limits_of(
    values: Sequence[float | None], bad: Side = "both", width: float = WIDTH
) -> list[Limits | None]:
    """For each value, in the order of the runs, the limits that those before it set; None where few do."""
    found: list[Limits | None] = []
    past: list[float] = []
    for value in values:
        found.append(_limits(np.array(past[-MOST:]), bad, width) if len(past) >= LEAST else None)
        if value is not None:
            past.append(value)
    return found


def _limits(past: FloatArray, bad: Side, width: float) -> Limits:
    middle = float(np.median(past))
    spread = _MAD * float(np.median(np.abs(past - middle))) or float(past.std(ddof=1))
    width *= (1 + _FEW / len(past)) * max(spread, _ROUNDING * abs(middle))
    return Limits(middle - width if bad != "high" else None, middle + width if bad != "low" else None)


def alarms_of(runs: Sequence[PastRun], measures: Sequence[Measure]) -> list[Alarm]:
    """All alarms of runs of one job, in their order."""
    found = []
    for measure in measures:
        values = [measure.of(run) for run in runs]
        limits = limits_of(values, measure.bad, measure.width)
        found += [
            Alarm(run, measure, value, limit)
            for run, value, limit in zip(runs, values, limits, strict=True)
            if value is not None and limit is not None and limit.exceeded_by(value)
        ]
    order = {run.run_id: place for place, run in enumerate(runs)}
    return sorted(found, key=lambda alarm: order[alarm.run.run_id])

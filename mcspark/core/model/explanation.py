"""What a calibrator did to one score, as named steps whose sum is the difference, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import fsum
from typing import Any, Literal

import numpy as np

from mcspark.core.cells.levels import IntArray
from mcspark.core.model.additive import Members
from mcspark.core.model.stages import Stage, Stages, corrected_one, logit

Kind = Literal["everybody", "group", "pair", "limit", "rounding"]

_ROUNDED = 1e-9
"""A last step larger than this is a limit that was met, and not the rounding of the sum."""


@dataclass(frozen=True)
class Step:
    """One term of a correction.

    Attributes
    ----------
    kind : str
        ``everybody``, ``group`` (the curve of a group), ``pair`` (of two groups), ``limit`` (the score is
        kept in [0, 1]) or ``rounding`` (of the sum, to a double).
    name : str
    value : float
        On the scale of the stage's link.
    """

    kind: Kind
    name: str
    value: float


@dataclass(frozen=True)
class ExplainedStage:
    """One stage.

    Attributes
    ----------
    link : str
        Scale of start, steps and end: ``identity``, the score's own, or ``logit``, its log-odds.
    before, after : float
        Score that came in and that went out.
    start, end : float
        The same on the scale; ``math.fsum`` of the start and the steps is the end, exactly.
    steps : tuple of Step
    """

    link: str
    before: float
    after: float
    start: float
    end: float
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Explanation:
    """From score to calibrated score.

    Attributes
    ----------
    score, calibrated : float
    groups : tuple of str
        The groups that the row is in.
    stages : tuple of ExplainedStage
    """

    score: float
    calibrated: float
    groups: tuple[str, ...]
    stages: tuple[ExplainedStage, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return asdict(self)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One flat row a step: ``stage`` (from 0), ``link``, ``kind``, ``name``, ``value``."""
        for i, stage in enumerate(self.stages):
            for step in stage.steps:
                yield {"stage": i, "link": stage.link, **asdict(step)}


def explained(
    stages: Stages, score: float, member: Members, names: tuple[str, ...] | None = None
) -> Explanation:
    """Explain one row.

    Parameters
    ----------
    stages : Stages
    score : float
        In [0, 1].
    member : ndarray of bool, shape (G,), or of int, shape (K,)
        The groups of the row: whether it is in each, or the numbers of its own (-1 for none).
    names : tuple of str, optional
        What the groups are called; their ids if absent.
    """
    names = names or stages.groups
    own = np.flatnonzero(member) if member.dtype == np.bool_ else member[member >= 0]
    groups = own.astype(np.int64)
    current, found = score, []
    for stage in stages.stages:
        one = _explained(stage, current, groups, names)
        found.append(one)
        current = one.after
    inside = tuple(names[group] for group in groups.tolist())
    return Explanation(score, current, inside, tuple(found))


def _explained(stage: Stage, score: float, groups: IntArray, names: tuple[str, ...]) -> ExplainedStage:
    form = stage.form
    place = int(form.bins_of(np.array([score]))[0])
    steps = [Step("everybody", "everybody", float(form.base[place]) + form.constant)]
    total = float(form.base[place]) + float(form.signature_offset(groups[None, :])[0])
    for group in groups.tolist():
        value = float(form.curves[group, place])
        total += value
        if value:
            steps.append(Step("group", names[group], value))
    for i, first in enumerate(groups.tolist()):
        others = groups[i + 1 :]
        known, values = form.pair_of(np.full(len(others), first), others)
        for second, value in zip(others[known].tolist(), values.tolist(), strict=True):
            if value:
                steps.append(Step("pair", f"{names[first]} and {names[second]}", value))
    after = corrected_one(score, total, stage.link)
    if stage.link == "logit":
        start = float(logit(np.array([score]))[0])
        end = start + total
    else:
        start, end = score, after
    # What is left of the exact sum, and of that again, until nothing is.
    while rest := fsum([end, -start, *(-step.value for step in steps)]):
        limited = abs(rest) > _ROUNDED
        name = "kept between 0 and 1" if limited else "rounding of the sum"
        steps.append(Step("limit" if limited else "rounding", name, rest))
    return ExplainedStage(stage.link, score, after, start, end, tuple(steps))

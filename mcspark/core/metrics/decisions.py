"""Decisions by a threshold on the score: how many rows of each group are above it, and which of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mcspark.core.cells.levels import FloatArray
from mcspark.core.cells.summed import Summed


@dataclass(frozen=True)
class Decision:
    """One threshold in one group, or among all rows; None where there is no weight to divide by.

    Attributes
    ----------
    group : str or None
    threshold : Fraction
    rate : float or None
        Share of the weight with a score of at least the threshold, range [0, 1].
    true_positive : float or None
        The same share of the weight of labels 1: Σ w·y over Σ w·y of the whole group.
    false_positive : float or None
        The same share of the weight of labels 0.
    """

    group: str | None
    threshold: Fraction
    rate: float | None
    true_positive: float | None
    false_positive: float | None


def decisions(cells: Summed, thresholds: Sequence[Fraction]) -> tuple[Decision, ...]:
    """The decisions of all rows, then of each group, at each threshold.

    Parameters
    ----------
    cells : Summed
        Of the rows to judge only.
    thresholds : sequence of Fraction
        In (0, 1), each an edge of the base levels, so that no bin is on both sides.
    """
    found = []
    for threshold in thresholds:
        p, q = threshold.numerator, threshold.denominator
        weight = np.vstack([cells.level_sums("weight", q), cells.group_sums("weight", q)])
        label = np.vstack([cells.level_sums("label", q), cells.group_sums("label", q)])
        shares = (_share_above(value, p) for value in (weight, label, weight - label))
        names = (None, *cells.groups)
        found += [Decision(g, threshold, *values) for g, *values in zip(names, *shares, strict=True)]
    return tuple(found)


def _share_above(value: FloatArray, level: int) -> list[float | None]:
    """By row, the part of the sum that lies at this level or above."""
    above, total = value[:, level:].sum(axis=1), value.sum(axis=1)
    return [float(np.clip(a / t, 0.0, 1.0)) if t > 0 else None for a, t in zip(above, total, strict=True)]

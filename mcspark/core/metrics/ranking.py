"""How well a score ranks rows: area under the ROC curve and average precision, from cells.

Rows of a cell stand at the cell's mean score, so rows that differ by less than a bin's width and share their
groups are ties. A label of 0.3 is 0.3 of a positive and 0.7 of a negative row.
"""

from __future__ import annotations

import numpy as np

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import FloatArray

_DIGITS = 9
"""Means of equal scores differ by the rounding of their sums; these decimals are told apart."""


def auc(cells: Cells) -> float | None:
    """Area under the ROC curve: probability that a positive row has the higher score, a tie counting half.

    None where there are no positive or no negative rows.
    """
    positive, negative = _by_score(cells)
    pairs = positive.sum() * negative.sum()
    if pairs <= 0:
        return None
    below = np.cumsum(negative) - negative
    return float((positive * (below + negative / 2)).sum() / pairs)


def average_precision(cells: Cells) -> float | None:
    """Area under the precision-recall curve as a step function, Σ (Rₖ − Rₖ₋₁) Pₖ.

    None where there are no positive rows.
    """
    positive, negative = (side[::-1] for side in _by_score(cells))
    total = positive.sum()
    if total <= 0:
        return None
    found = np.cumsum(positive)
    taken = found + np.cumsum(negative)
    return float((positive * found / np.where(taken > 0, taken, 1.0)).sum() / total)


def _by_score(cells: Cells) -> tuple[FloatArray, FloatArray]:
    """Weight of the positive and of the negative rows at each distinct score, ascending."""
    cells = cells.take(cells.weight > 0)
    distinct, place = np.unique(np.round(cells.mean_score, _DIGITS), return_inverse=True)
    positive = np.clip(cells.label, 0.0, cells.weight)
    sides = (positive, cells.weight - positive)
    return tuple(np.bincount(place, weights=side, minlength=len(distinct)) for side in sides)  # type: ignore[return-value]

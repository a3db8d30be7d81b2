"""Log loss, and the squared loss in two parts, from cells."""

from __future__ import annotations

import numpy as np

from mcspark.core.cells.isotonic import isotonic
from mcspark.core.cells.summed import Summed


def log_loss(cells: Summed) -> float | None:
    """Mean of −y log f − (1 − y) log(1 − f); None without weight.

    In each cell the positive rows stand at their mean score and the negative rows at theirs, which is exact
    to the first order of a bin's width. Scores of exactly 0 or 1 that are wrong and share a bin with others
    cost less here than by rows.
    """
    total = cells.total("weight")
    if total <= 0:
        return None
    return cells.total("surprise") / total


def calibration_loss(cells: Summed) -> float | None:
    """Part of the squared loss that the best non-decreasing correction of the score takes away; at least 0.

    The miscalibration term of the CORP decomposition (Dimitriadis, Gneiting & Jordan 2021), with the score
    bins as the finest steps; None without weight.
    """
    if cells.total("weight") <= 0:
        return None
    return max(cells.loss() - _isotonic_loss(cells), 0.0)


def refinement_loss(cells: Summed) -> float | None:
    """What of the squared loss is left after the best non-decreasing correction: loss − calibration loss."""
    return min(_isotonic_loss(cells), cells.loss()) if cells.total("weight") > 0 else None


def _isotonic_loss(cells: Summed) -> float:
    """Mean squared loss of the isotonic regression of the labels on the bins."""
    weight, label = cells.level_sums("weight"), cells.level_sums("label")
    value = np.nan_to_num(isotonic(weight, label))
    square = float(cells.total("label_sq") - 2 * (value * label).sum() + (value**2 * weight).sum())
    return max(square, 0.0) / float(weight.sum())

"""Log loss, and the squared loss in two parts, from cells."""

from __future__ import annotations

import numpy as np

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.isotonic import isotonic
from mcspark.core.cells.levels import FloatArray

_LEAST = float(np.finfo(np.float64).eps)
"""Scores are this far from 0 and 1 at least in a log loss, as in scikit-learn."""


def log_loss(cells: Cells) -> float | None:
    """Mean of −y log f − (1 − y) log(1 − f); None without weight.

    In each cell the positive rows stand at their mean score and the negative rows at theirs, which is exact
    to the first order of a bin's width. Scores of exactly 0 or 1 that are wrong and share a bin with others
    cost less here than by rows.
    """
    total = float(cells.weight.sum())
    if total <= 0:
        return None
    positive = np.clip(cells.label, 0.0, cells.weight)
    negative = cells.weight - positive
    surprise = _log_of_mean(cells.score_label, positive)
    surprise += _log_of_mean(negative - (cells.score - cells.score_label), negative)
    return float(-surprise.sum() / total)


def _log_of_mean(value: FloatArray, weight: FloatArray) -> FloatArray:
    """Weight times the log of the mean, 0 where there is no weight."""
    mean = np.clip(value / np.where(weight > 0, weight, 1.0), _LEAST, 1 - _LEAST)
    return np.where(weight > 0, weight * np.log(mean), 0.0)


def calibration_loss(cells: Cells) -> float | None:
    """Part of the squared loss that the best non-decreasing correction of the score takes away; at least 0.

    The miscalibration term of the CORP decomposition (Dimitriadis, Gneiting & Jordan 2021), with the score
    bins as the finest steps; None without weight.
    """
    if cells.weight.sum() <= 0:
        return None
    return max(cells.loss() - _isotonic_loss(cells), 0.0)


def refinement_loss(cells: Cells) -> float | None:
    """What of the squared loss is left after the best non-decreasing correction: loss − calibration loss."""
    return min(_isotonic_loss(cells), cells.loss()) if cells.weight.sum() > 0 else None


def _isotonic_loss(cells: Cells) -> float:
    """Mean squared loss of the isotonic regression of the labels on the bins."""
    weight, label = cells.level_sums("weight"), cells.level_sums("label")
    value = np.nan_to_num(isotonic(weight, label))
    square = float(cells.label_sq.sum() - 2 * (value * label).sum() + (value**2 * weight).sum())
    return max(square, 0.0) / float(weight.sum())

"""Values of a cell that are no sums over its rows, of which sums over cells are needed all the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from mcspark.core.cells.levels import FloatArray


class Columns(Protocol):
    """The sums of some cells, each of shape (C,); see :data:`mcspark.core.cells.cells.SUMS`."""

    @property
    def weight(self) -> FloatArray:
        """Σw."""

    @property
    def weight_sq(self) -> FloatArray:
        """Σw²."""

    @property
    def score(self) -> FloatArray:
        """Σw·f."""

    @property
    def label(self) -> FloatArray:
        """Σw·y."""

    @property
    def score_sq(self) -> FloatArray:
        """Σw·f²."""

    @property
    def label_sq(self) -> FloatArray:
        """Σw·y²."""

    @property
    def score_label(self) -> FloatArray:
        """Σw·f·y."""


_LEAST = float(np.finfo(np.float64).eps)
"""Scores are this far from 0 and 1 at least in a log loss, as in scikit-learn."""

LARGEST_SURPRISE = -float(np.log(_LEAST))
"""No row's log loss is more than this."""


def surprise(cells: Columns) -> FloatArray:
    """Σ w (−y log f − (1 − y) log(1 − f)) of each cell.

    The positive rows stand at their mean score and the negative rows at theirs, which is exact to the first
    order of a bin's width.
    """
    positive = np.clip(cells.label, 0.0, cells.weight)
    negative = cells.weight - positive
    found = _log_of_mean(cells.score_label, positive)
    found += _log_of_mean(negative - (cells.score - cells.score_label), negative)
    return -found


def _log_of_mean(value: FloatArray, weight: FloatArray) -> FloatArray:
    """Weight times the log of the mean, 0 where there is no weight."""
    mean = np.clip(value / np.where(weight > 0, weight, 1.0), _LEAST, 1 - _LEAST)
    return np.where(weight > 0, weight * np.log(mean), 0.0)


def chance(cells: Columns) -> FloatArray:
    """Variance of Σ w (f − y) in each cell under perfect calibration, Σ w² f (1 − f), at the cell's mean."""
    mean = np.clip(cells.score / np.where(cells.weight > 0, cells.weight, 1.0), 0.0, 1.0)
    return np.asarray(cells.weight_sq * mean * (1 - mean))


def residual(cells: Columns) -> FloatArray:
    """Σ w (f − y) of each cell."""
    return np.asarray(cells.score - cells.label)


def largest(cells: Columns) -> FloatArray:
    """Σ w f (1 − f) of each cell: Σ w times the largest variance that labels of this mean can have."""
    return np.maximum(cells.score - cells.score_sq, 0.0)


def ceiling(cells: Columns) -> FloatArray:
    """The largest variance that Σ w y can have in each cell."""
    most = largest(cells)
    return np.asarray(cells.weight_sq * np.divide(most, cells.weight, out=most * 0, where=cells.weight > 0))


def scatter(cells: Columns) -> FloatArray:
    """Variance of Σ w (f − y) over samples of the rows of each cell, all of which have weight."""
    square = cells.score_sq - 2 * cells.score_label + cells.label_sq
    return np.asarray(np.maximum(square, 0.0) * cells.weight_sq / cells.weight)


DERIVED: Mapping[str, Callable[[Columns], FloatArray]] = {
    "surprise": surprise, "chance": chance, "residual": residual, "largest": largest, "ceiling": ceiling,
    "scatter": scatter,
}  # fmt: skip
"""By the names that stand beside those of the sums."""

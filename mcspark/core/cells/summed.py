"""What metrics need of cells: sums by group and bin, which those of parts of the cells add up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mcspark.core.cells.levels import FloatArray, IntArray, ScoreBins, level_value
from mcspark.core.cells.ranked import Ranked


class Summed(Protocol):
    """Cells, wherever they are, as far as sums over them tell.

    A name is one of :data:`mcspark.core.cells.cells.SUMS` or :data:`mcspark.core.cells.derived.DERIVED`.
    """

    @property
    def bins(self) -> ScoreBins:
        """Where a score falls."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups."""

    @property
    def ranked(self) -> Ranked:
        """How well the scores of the cells rank the rows."""

    def total(self, name: str) -> float:
        """Sum of ``name`` over all rows."""

    def level_sums(self, name: str, m: int | None = None) -> FloatArray:
        """Sum of ``name`` over all rows for each bin, or level of the grid of ``m``."""

    def group_sums(self, name: str, m: int | None = None) -> FloatArray:
        """Sum of ``name`` for each group and bin, or level of the grid of ``m``; shape (G, bins or m)."""

    def loss(self, m: int | None = None) -> float:
        """Mean squared loss of the score, or of its ``m``-discretized version."""


@dataclass(frozen=True)
class CellSums:
    """The sums of cells that are elsewhere; a :class:`Summed`.

    Parameters
    ----------
    bins : ScoreBins
    groups : tuple of str, length G
    sums : mapping of str to ndarray, shape (G + 1, bins)
        By name; the last row is all rows.
    ranked : Ranked
    """

    bins: ScoreBins
    groups: tuple[str, ...]
    sums: Mapping[str, FloatArray]
    ranked: Ranked

    def total(self, name: str) -> float:
        """See :class:`Summed`."""
        return float(self.sums[name][-1].sum())

    def level_sums(self, name: str, m: int | None = None) -> FloatArray:
        """See :class:`Summed`."""
        return np.asarray(rolled(self.sums[name][-1:], self.bins, m)[0])

    def group_sums(self, name: str, m: int | None = None) -> FloatArray:
        """See :class:`Summed`."""
        return rolled(self.sums[name][:-1], self.bins, m)

    def loss(self, m: int | None = None) -> float:
        """See :class:`Summed`."""
        total = self.total("weight")
        if total <= 0:
            return float("nan")
        if m is None:
            square = self.total("score_sq") - 2 * self.total("score_label") + self.total("label_sq")
        else:
            value = level_value(np.arange(m), m)
            weight, label = self.level_sums("weight", m), self.level_sums("label", m)
            square = float((value**2 * weight - 2 * value * label).sum()) + self.total("label_sq")
        return max(square, 0.0) / total


def rolled(value: FloatArray, bins: ScoreBins, m: int | None) -> FloatArray:
    """Sums over bins, shape (…, bins), turned to sums over the levels of the grid of ``m``."""
    if m is None:
        return value.copy()
    # A level is a row of bins, so the sums of one pass over the cells serve every grid.
    first = np.searchsorted(bins.level_of_bin(m), np.arange(m))
    return np.asarray(np.add.reduceat(value, first, axis=1), dtype=np.float64)


def add_exactly(total: IntArray, place: IntArray, value: IntArray) -> None:
    """Add whole numbers below 2⁶¹ into the places of a flat table, without rounding.

    Parameters
    ----------
    total : ndarray of int, shape (P,)
    place, value : ndarray of int, shape (N,)
        N below 2²².
    """
    for part, shift in ((value >> _HALF, _HALF), (value & (2**_HALF - 1), 0)):
        total += np.bincount(place, weights=part, minlength=len(total)).astype(np.int64) << shift


_HALF = 30

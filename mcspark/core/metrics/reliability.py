"""Score against label inside every group, level by level: what a reliability diagram shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mcspark.core.cells.levels import FloatArray
from mcspark.core.cells.summed import Summed

REFERENCE_GRID = 20


def reference_grid(levels: Sequence[int]) -> int:
    """The grid that a report speaks of: 20 levels where it was measured, else the second coarsest."""
    grids = sorted(levels)
    return REFERENCE_GRID if REFERENCE_GRID in grids else grids[min(1, len(grids) - 1)]


@dataclass(frozen=True)
class LevelFacts:
    """The rows of one group (None: of all) whose score is in one level.

    Attributes
    ----------
    group : str or None
    level : int
        In 0..m-1; the level holds the scores in ``[level / m, (level + 1) / m)``.
    rows : int
    share : float, range [0, 1]
        Of the weight of all rows.
    mean_score, mean_label : float, range [0, 1]
    error : float or None
        Standard error of the mean label; None where the weight is that of one row.
    """

    group: str | None
    level: int
    rows: int
    share: float
    mean_score: float
    mean_label: float
    error: float | None


@dataclass(frozen=True)
class Reliability:
    """Sums by group and level on the grid of ``m`` levels; row 0 is all rows, row i + 1 group i.

    Attributes
    ----------
    m : int
    groups : tuple of str, length G
    n, weight, weight_sq, score, label, label_sq : ndarray, shape (G + 1, m)
        The sums of the same names in :data:`mcspark.core.cells.cells.SUMS`.
    """

    m: int
    groups: tuple[str, ...]
    n: FloatArray
    weight: FloatArray
    weight_sq: FloatArray
    score: FloatArray
    label: FloatArray
    label_sq: FloatArray

    @classmethod
    def of(cls, cells: Summed, m: int) -> Reliability:
        """From the cells of the rows to judge; ``m`` must divide ``cells.bins.base``."""
        names = ("n", "weight", "weight_sq", "score", "label", "label_sq")
        sums = {name: np.vstack([cells.level_sums(name, m), cells.group_sums(name, m)]) for name in names}
        return cls(m, cells.groups, **sums)

    def facts(self) -> Iterator[LevelFacts]:
        """Every level that holds weight, of all rows first and then group by group."""
        total = self.weight[0].sum()
        for row, group in enumerate((None, *self.groups)):
            for level in np.flatnonzero(self.weight[row] > 0).tolist():
                weight = self.weight[row, level]
                label = self.label[row, level] / weight
                spread = max(self.label_sq[row, level] / weight - label**2, 0.0)
                share_of_largest = self.weight_sq[row, level] / weight**2  # 1 over the effective rows
                # The variance is scaled up for the mean that was taken from the same rows.
                error = (
                    np.sqrt(spread * share_of_largest / (1 - share_of_largest))
                    if share_of_largest < 1 - 1e-9
                    else None
                )
                yield LevelFacts(
                    group=group,
                    level=level,
                    rows=int(self.n[row, level]),
                    share=float(weight / total),
                    mean_score=float(self.score[row, level] / weight),
                    mean_label=float(label),
                    error=None if error is None else float(error),
                )

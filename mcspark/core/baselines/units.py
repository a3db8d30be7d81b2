"""Units: cells summed up to (signature, level), the smallest things a discretized solver moves.

Rows of one signature on one level of the grid of ``m`` are never told apart by a method that looks at
the level and the groups alone, so such a method runs on units and replays exactly on rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import FloatArray, IntArray, level_index, level_value
from mcspark.core.model.additive import BoolArray, checked_membership


@dataclass(frozen=True, eq=False)
class Units:
    """Sums per (signature, level of the score), U units of positive weight.

    Parameters
    ----------
    m : int
        Number of levels.
    membership : ndarray of bool, shape (S, G)
    signature, level : ndarray of int, shape (U,)
        Row of ``membership``, and level of the score to start from.
    n, weight, label : ndarray of float, shape (U,)
        Rows, Σw and Σw·y.
    label_sq : float
        Σw·y² over all units.
    of_cell : ndarray of int, shape (C,)
        Unit of each cell; -1 for a cell without weight.
    """

    m: int
    membership: BoolArray
    signature: IntArray
    level: IntArray
    n: FloatArray
    weight: FloatArray
    label: FloatArray
    label_sq: float
    of_cell: IntArray

    @classmethod
    def from_cells(cls, cells: Cells, m: int) -> Units:
        """Units of the cells on the grid of ``m`` levels; ``m`` must divide ``cells.bins.base``."""
        kept = cells.weight > 0
        level = cells.bins.level_of_bin(m)[cells.bin[kept]]
        unique, unit = np.unique(cells.signature[kept] * m + level, return_inverse=True)
        places = unit.reshape(-1)
        of_cell = np.full(len(cells), -1, dtype=np.int64)
        of_cell[kept] = places

        def total(value: FloatArray) -> FloatArray:
            summed = np.bincount(places, weights=value[kept], minlength=len(unique))
            return np.asarray(summed, dtype=np.float64)

        sums = total(cells.n), total(cells.weight), total(cells.label)
        label_sq = float(cells.label_sq[kept].sum())
        return cls(m, cells.membership, unique // m, unique % m, *sums, label_sq, of_cell)

    def __len__(self) -> int:
        return len(self.signature)

    def loss(self, level: IntArray) -> float:
        """Mean squared loss if each unit stands at the middle of this level; NaN without units."""
        if not len(self):
            return float("nan")
        value = level_value(level, self.m)
        square = (value * value * self.weight - 2 * value * self.label).sum() + self.label_sq
        return float(square / self.weight.sum())


def group_pairs(membership: BoolArray, signature: IntArray) -> tuple[IntArray, IntArray]:
    """Every (group, place) pair such that ``signature[place]`` is in the group, ordered by place."""
    groups_of = np.nonzero(membership)[1]
    size = membership.sum(axis=1)
    start = np.cumsum(size) - size
    count = size[signature]
    owner = np.repeat(np.arange(len(signature)), count)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    return groups_of[start[signature[owner]] + offset], owner


class Replayed(ABC):
    """A fit that moves rows from level to level by their groups, replayed on each (signature, level) once.

    Attributes
    ----------
    m, n_groups : int
        Number of levels and of groups.
    """

    m: int
    n_groups: int

    def apply_signatures(
        self, score: FloatArray, signature: IntArray, membership_table: BoolArray
    ) -> FloatArray:
        """Middles of levels (N,) of scores (N,); ``signature`` (N,) is a row of ``membership_table``."""
        member, m = checked_membership(membership_table, self.n_groups), self.m
        key = np.asarray(signature, dtype=np.int64) * m + level_index(np.asarray(score, dtype=np.float64), m)
        present = np.zeros(len(member) * m, dtype=bool)
        present[key] = True
        unit = np.flatnonzero(present)
        last = np.zeros(len(present), dtype=np.int64)
        last[unit] = self._replay(member, unit // m, unit % m)
        return level_value(last[key], m)

    @abstractmethod
    def _replay(self, member: BoolArray, signature: IntArray, level: IntArray) -> IntArray:
        """Last level (U,) of units that begin on ``level``; ``signature`` (U,) is a row of ``member``."""

"""MCBoost: set the worst {g_i = 1, f = v} to its mean, again and again, on the grid of ``m`` levels.

Roth's variant of the algorithm of Hébert-Johnson et al. (paper, section on the baselines and its
appendix). The literature leaves choices open; these are ours:

- the score is first rounded to the grid; a patch moves its set to the level nearest to its mean label, so
  that the range stays the grid;
- the worst set is the one of the largest ``Pr[g_i = 1, f = v] · (v - E[y | g_i = 1, f = v])²``, what an
  exact correction would take off the squared loss; among equals, the first group, then the lowest level;
- sets whose mean rounds to the level they are on are passed over, so every patch lowers the fitting loss
  and the algorithm ends by itself;
- the patches kept are those up to the lowest squared loss on held-out cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcspark.core.baselines.method import Method, Settings, chosen, halves
from mcspark.core.baselines.plain import MAX_LEVELS, read_int, read_ints
from mcspark.core.baselines.units import Replayed, Units
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.groups import MAX_GROUPS
from mcspark.core.cells.levels import FloatArray, IntArray, level_of_mean, level_value
from mcspark.core.model.additive import BoolArray

_TIE = 1e-9
"""Violations closer than this share are equal: sums differ in their last digits with the order of cells."""


@dataclass(frozen=True, eq=False)
class McboostFit(Replayed):
    """Patches, replayed in order: rows of a group on one level move to another.

    Parameters
    ----------
    m, n_groups : int
        Number of levels and of groups.
    group, source, target : ndarray of int, shape (T,)
        Group, level before and level after of each patch.
    """

    m: int
    n_groups: int
    group: IntArray
    source: IntArray
    target: IntArray

    def _replay(self, member: BoolArray, signature: IntArray, level: IntArray) -> IntArray:
        floor = _Floors(member, signature, level, self.m)
        for patch in zip(self.group.tolist(), self.source.tolist(), self.target.tolist(), strict=True):
            floor.move(*patch)
        return floor.level()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "m": self.m,
            "n_groups": self.n_groups,
            "group": self.group.tolist(),
            "source": self.source.tolist(),
            "target": self.target.tolist(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> McboostFit:
        """Inverse of :meth:`to_dict`; ValueError on anything that is no such fit."""
        m, n_groups = read_int(plain, "m", 1, MAX_LEVELS), read_int(plain, "n_groups", 0, MAX_GROUPS)
        group = read_ints(plain, "group", (None,), 0, n_groups - 1)
        levels = (read_ints(plain, name, (len(group),), 0, m - 1) for name in ("source", "target"))
        return cls(m, n_groups, group, *levels)


def fit_mcboost(
    cells_fit: Cells, cells_stop: Cells, m: int, *, max_patches: int = 10_000, patience: int = 100
) -> McboostFit:
    """Fit the patches on ``cells_fit``; keep those up to the lowest loss on ``cells_stop``.

    Parameters
    ----------
    cells_fit, cells_stop : Cells
        Without weight in ``cells_stop`` nothing stops the fit before no patch is left.
    m : int
        Number of levels; divides ``bins.base`` of both.
    max_patches : int
    patience : int
        Give up after this many patches without a lower held-out loss.
    """
    fit, stop = Units.from_cells(cells_fit, m), Units.from_cells(cells_stop, m)
    floor, stop_floor = (_Floors(u.membership, u.signature, u.level, m) for u in (fit, stop))
    sums = _GroupSums(fit, m)
    value = level_value(np.arange(m), m)
    patches: list[tuple[int, int, int]] = []
    loss, lowest, kept = 0.0, 0.0, 0
    while len(patches) < max_patches:
        patch = sums.worst()
        if patch is None:
            break
        patches.append(patch)
        _, source, target = patch
        sums.move(source, target, floor.move(*patch))
        if len(stop):
            moved = stop_floor.move(*patch)
            loss += float(
                (value[target] ** 2 - value[source] ** 2) * stop.weight[moved].sum()
                - 2 * (value[target] - value[source]) * stop.label[moved].sum()
            )
            if loss < lowest - 1e-12 * stop.weight.sum():
                lowest, kept = loss, len(patches)
            elif len(patches) - kept >= patience:
                break
        else:
            kept = len(patches)
    columns = np.asarray(patches[:kept], dtype=np.int64).reshape(-1, 3).T
    return McboostFit(m, len(cells_fit.groups), *(column.copy() for column in columns))


class _Floors:
    """Which units stand on which level; a patch looks at those of one level only."""

    def __init__(self, membership: BoolArray, signature: IntArray, level: IntArray, m: int) -> None:
        self._members = np.ascontiguousarray(membership.T)
        self._signature = signature
        order = np.argsort(level, kind="stable")
        self._on = np.split(order, np.searchsorted(level[order], np.arange(1, m)))

    def move(self, group: int, source: int, target: int) -> IntArray:
        """Move the units of a group from one level to another; returns those moved."""
        units = self._on[source]
        member = self._members[group][self._signature[units]]
        moved: IntArray = units[member]
        if len(moved):
            self._on[source] = units[~member]
            self._on[target] = np.concatenate([self._on[target], moved])
        return moved

    def level(self) -> IntArray:
        """Level of each unit."""
        level = np.empty(len(self._signature), dtype=np.int64)
        for k, units in enumerate(self._on):
            level[units] = k
        return level


class _GroupSums:
    """Rows, Σw and Σw·y of every {g_i = 1, f = v}, shape (G, m), kept up to date as units move."""

    def __init__(self, units: Units, m: int) -> None:
        self._design = units.membership.astype(np.float64)
        self._signature = units.signature
        self._values = np.stack([units.n, units.weight, units.label])
        self._sums = np.zeros((3, units.membership.shape[1], m))
        self._total = units.weight.sum()
        self._middle = level_value(np.arange(m), m)
        for level in range(m):
            self._sums[:, :, level] = self._of(np.flatnonzero(units.level == level))

    def _of(self, units: IntArray) -> FloatArray:
        return np.asarray(self._values[:, units] @ self._design[self._signature[units]])

    def move(self, source: int, target: int, moved: IntArray) -> None:
        """These units went from one level to another."""
        change = self._of(moved)
        self._sums[:, :, source] -= change
        self._sums[:, :, target] += change

    def worst(self) -> tuple[int, int, int] | None:
        """Group, level and new level of the worst set that a patch would improve; None if there is none."""
        n, weight, label = self._sums
        # Row counts are exact, so they tell an emptied set from what rounding has left in its sums.
        filled = (n > 0) & (weight > 0)
        mean = np.divide(label, weight, out=np.zeros_like(label), where=filled)
        mean = np.clip(mean, 0.0, 1.0)
        target = level_of_mean(mean, len(self._middle))
        off = (mean - self._middle) ** 2
        gain = weight * (off - (mean - self._middle[target]) ** 2)
        violation = np.where(filled & (gain > 1e-12 * self._total), weight * off, 0.0)
        largest = violation.max(initial=0.0)
        if largest <= 0:
            return None
        group, level = np.argwhere(violation >= largest * (1 - _TIE))[0].tolist()
        return group, level, int(target[group, level])


def _learn(cells: Cells, settings: Settings) -> McboostFit:
    fit, stop = halves(cells)
    return fit_mcboost(fit, stop, settings["grid"], **chosen(settings, "max_patches", "patience"))


METHOD = Method(
    "mcboost", "MCBoost", _learn, McboostFit.from_dict,
    swept=tuple((("early_stopping", share / 10),) for share in range(1, 6)),
    own=lambda settings: ((("early_stopping", settings["early_stopping"]),),),
    by_grid=True,
)  # fmt: skip

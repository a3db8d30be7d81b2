"""Atoms: cells merged to (base level, signature), the finest parts the calibration errors tell apart.

Sums of independent rows have summed means and variances, so simulations need one random number an atom.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcspark.core.cells.cells import SUMS, Cells, effective_rows
from mcspark.core.cells.levels import FloatArray, IntArray, ScoreBins

_CHUNK = 4_000_000
"""Numbers that a block of draws may hold at once."""


@dataclass(frozen=True)
class Atoms:
    """The atoms of a table of cells, in the order of their base levels.

    Attributes
    ----------
    cells : Cells
        One cell an atom, on bins that are the base levels; every atom has weight.
    origin : ndarray of int, shape (cells with weight,)
        The atom of each cell that was merged.
    kept : ndarray of bool, shape (cells before,)
        Cells with weight; the others are in no atom.
    rows : ndarray, shape (A,)
        Effective number of rows, (Σw)² / Σw²: the number of rows where weights are equal.
    """

    cells: Cells
    origin: IntArray
    kept: NDArray[np.bool_]
    rows: FloatArray

    @classmethod
    def of(cls, cells: Cells) -> Atoms:
        """Merge the bins of each base level, and all roles; cells without weight are dropped."""
        base, n_signatures = cells.bins.base, max(len(cells.membership), 1)
        kept = np.asarray(cells.weight > 0, dtype=np.bool_)
        level = cells.bins.level_of_bin(base)[cells.bin[kept]]
        key, origin = np.unique(level * n_signatures + cells.signature[kept], return_inverse=True)
        origin = origin.reshape(-1).astype(np.int64)
        sums: dict[str, Any] = {name: _merge(getattr(cells, name)[kept], origin, len(key)) for name in SUMS}
        merged = Cells(
            bins=ScoreBins.uniform(base),
            groups=cells.groups,
            membership=cells.membership,
            bin=key // n_signatures,
            signature=key % n_signatures,
            role=np.zeros(len(key), dtype=np.int64),
            **sums,
        )
        exact = effective_rows(merged.weight, merged.weight_sq, merged.n)
        whole = np.rint(exact)
        return cls(merged, origin, kept, np.where(np.abs(exact - whole) < 1e-6 * exact, whole, exact))

    def __len__(self) -> int:
        return len(self.cells)

    def merge(self, value: FloatArray) -> FloatArray:
        """Sum over the cells of each atom of one value a cell; shape (A,)."""
        return _merge(value[self.kept], self.origin, len(self))

    def blocks(self, draws: int) -> Iterator[int]:
        """Sizes of the blocks into which so many draws are cut, so that memory stays bounded."""
        size = max(1, _CHUNK // max(len(self.cells.groups) * self.cells.bins.base, 1))
        for start in range(0, draws, size):
            yield min(size, draws - start)

    def group_sums(self, value: FloatArray) -> FloatArray:
        """Sums over each group and base level of values (D, A), one an atom; shape (D, G, base)."""
        base = self.cells.bins.base
        out = np.zeros((base, len(value), len(self.cells.groups)))
        member = self.cells.membership.astype(np.float64)
        edge = np.searchsorted(self.cells.bin, np.arange(base + 1))
        for level in np.flatnonzero(np.diff(edge)):
            part = slice(edge[level], edge[level + 1])
            out[level] = value[:, part] @ member[self.cells.signature[part]]
        return np.ascontiguousarray(out.transpose(1, 2, 0))


def roll_up(value: FloatArray, m: int) -> FloatArray:
    """Sums over base levels turned to sums over the levels of the grid of ``m``: (…, base) → (…, m)."""
    return np.asarray(value.reshape(*value.shape[:-1], m, -1).sum(axis=-1), dtype=np.float64)


def _merge(value: FloatArray, origin: IntArray, size: int) -> FloatArray:
    return np.asarray(np.bincount(origin, weights=value, minlength=size), dtype=np.float64)

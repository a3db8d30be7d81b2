"""Greedy regression trees of depth 2 on (score bin, groups), from cells: exactly CART on their rows."""

from __future__ import annotations

import numpy as np

from mcspark.core.baselines.weak_tree import Sums, best_split
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.model.additive import BoolArray


class ScoreTreeLearner:
    """Grows trees on the same cells for one target after another; what does not change is summed once.

    Parameters
    ----------
    cells : Cells
    min_rows : float
        Neither side of a split may have fewer rows.
    """

    def __init__(self, cells: Cells, min_rows: float) -> None:
        self._cells, self._min_rows = cells, min_rows
        self._n_bins = cells.bins.n_bins
        self._design = cells.membership.astype(np.float64)
        # Rows and Σw, shape (2, ...): by bin; by group and bin; by group and group.
        self._by_bin = np.stack([cells.level_sums("n"), cells.level_sums("weight")])
        self._by_group_bin = np.stack([cells.group_sums("n"), cells.group_sums("weight")])
        self._by_pair = np.stack([self._of_groups(cells.n), self._of_groups(cells.weight)])

    def grow(self, target: FloatArray) -> tuple[IntArray, FloatArray, IntArray]:
        """The greedy tree for these sums of w·target, one a cell.

        Returns
        -------
        node : ndarray of int, shape (3, 2)
            Feature asked at the root, on its left side and on its right side (0 the score, i + 1 group i,
            -1 no question), and for the score the first bin that goes right.
        value : ndarray, shape (4,)
            Weighted mean targets of the leaves left-left, left-right, right-left, right-right.
        leaf : ndarray of int, shape (C,)
            Leaf of each cell.
        """
        cells = self._cells
        by_bin = np.concatenate([self._by_bin, [np.bincount(cells.bin, target, self._n_bins)]])
        by_group = np.concatenate([self._by_group_bin.sum(axis=2), [self._target_of_groups(target)]])
        total = by_bin.sum(axis=1)
        root = self._best(by_bin[:, None], by_group[:, None], total[:, None])[0]
        node = np.full((3, 2), -1, dtype=np.int64)
        node[0] = root
        if root[0] >= 0:
            right = _goes_right(root, cells)
            right_bin, right_group = self._right_side(root, right, target)
            right_total = right_bin.sum(axis=1)
            sides = (
                np.stack([by_bin - right_bin, right_bin], axis=1),
                np.stack([by_group - right_group, right_group], axis=1),
                np.stack([total - right_total, right_total], axis=1),
            )
            node[1:] = self._best(*sides)
        leaf = leaf_of(node, cells)
        weight, sums = (np.bincount(leaf, value, 4) for value in (cells.weight, target))
        return node, np.divide(sums, weight, out=np.zeros(4), where=weight > 0), leaf

    def _best(self, by_bin: Sums, by_group: Sums, total: Sums) -> IntArray:
        """Best question of each node, shape (nodes, 2)."""
        below = np.cumsum(by_bin, axis=2)[:, :, :-1]
        place, _ = best_split(np.concatenate([below, by_group], axis=2), total, self._min_rows)
        n_cuts = self._n_bins - 1
        feature = np.where(place < n_cuts, 0, place - n_cuts + 1)
        cut = np.where(place < n_cuts, place + 1, 0)
        return np.where(place[:, None] >= 0, np.stack([feature, cut], axis=1), -1)

    def _right_side(self, root: IntArray, right: BoolArray, target: FloatArray) -> tuple[Sums, Sums]:
        """Sums by bin, and by group, of the cells on the right of the root."""
        feature, cut = root.tolist()
        if feature == 0:
            by_bin = np.where(np.arange(self._n_bins) >= cut, self._by_bin, 0.0)
            by_group = self._by_group_bin[:, :, cut:].sum(axis=2)
        else:
            by_bin = self._by_group_bin[:, feature - 1]
            by_group = self._by_pair[:, feature - 1]
        kept = np.where(right, target, 0.0)
        return (
            np.concatenate([by_bin, [np.bincount(self._cells.bin, kept, self._n_bins)]]),
            np.concatenate([by_group, [self._target_of_groups(kept)]]),
        )

    def _target_of_groups(self, value: FloatArray) -> FloatArray:
        return np.asarray(self._signature_sums(value) @ self._design)

    def _of_groups(self, value: FloatArray) -> FloatArray:
        return np.asarray(self._design.T @ (self._signature_sums(value)[:, None] * self._design))

    def _signature_sums(self, value: FloatArray) -> FloatArray:
        return np.bincount(self._cells.signature, value, len(self._design)).astype(np.float64)


def _goes_right(question: IntArray, cells: Cells) -> BoolArray:
    feature, cut = question.tolist()
    if feature < 0:
        return np.zeros(len(cells), dtype=bool)
    if feature == 0:
        return np.asarray(cells.bin >= cut)
    return np.asarray(cells.membership[:, feature - 1][cells.signature])


def leaf_of(node: IntArray, cells: Cells) -> IntArray:
    """Leaf 0..3 in which each cell ends; without a question, all go left."""
    root, left, right = (_goes_right(question, cells) for question in node)
    return np.asarray(2 * root + np.where(root, right, left), dtype=np.int64)

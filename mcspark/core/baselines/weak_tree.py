"""Greedy regression trees of depth 1 or 2 from sums: exactly CART with squared error and weights.

A split is judged by what it takes off the weighted sum of squares,
``L_y² / L_w + R_y² / R_w - (L_y + R_y)² / (L_w + R_w)``, so sums of (rows, Σw, Σw·target) on either side
suffice. Splits that fall short of the best by rounding alone count as equal, and the first one wins: the
tree does not depend on the order in which the cells were summed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.model.additive import BoolArray

_TIE = 1e-9

Sums = FloatArray
"""Rows, Σw and Σw·target along the first axis: shape (3, ...)."""


def best_split(inside: Sums, total: Sums, min_rows: float) -> tuple[IntArray, FloatArray]:
    """Best of the candidate splits of each node.

    Parameters
    ----------
    inside : ndarray, shape (3, nodes, candidates)
        Sums on one side of each candidate.
    total : ndarray, shape (3, nodes)
        Sums of each node.
    min_rows : float
        Neither side may have fewer rows.

    Returns
    -------
    candidate : ndarray of int, shape (nodes,)
        -1 where no candidate takes anything off the sum of squares.
    gain : ndarray, shape (nodes,)
        What the candidate takes off; 0 where there is none.
    """
    whole = total[..., None]
    outside = whole - inside
    least = max(min_rows, 1)
    usable = (inside[0] >= least) & (outside[0] >= least) & (inside[1] > 0) & (outside[1] > 0)
    gain = _explained(inside, usable) + _explained(outside, usable) - _explained(whole, whole[1] > 0)
    # Less than this is rounding: the sums of squares themselves are known no better.
    noise = 1e-12 * _explained(whole, whole[1] > 0) + 1e-300
    gain = np.where(usable & (gain > noise), gain, 0.0)
    largest = gain.max(axis=-1, initial=0.0)
    first = np.argmax(gain >= largest[..., None] * (1 - _TIE), axis=-1) if gain.shape[-1] else 0
    return np.where(largest > 0, first, -1).astype(np.int64), np.asarray(largest, dtype=np.float64)


def _explained(sums: Sums, usable: BoolArray) -> FloatArray:
    return np.asarray(
        np.divide(sums[2] ** 2, sums[1], out=np.zeros(np.broadcast(sums[2], usable).shape), where=usable)
    )


@dataclass(frozen=True, eq=False)
class GroupTrees:
    """One tree on the groups for each of several nodes (level sets).

    Parameters
    ----------
    feature : ndarray of int, shape (nodes, 3)
        Group asked at the root, then by its members' "no" side and by their "yes" side; -1: no question.
    value : ndarray, shape (nodes, 4)
        Weighted mean target of the leaves no-no, no-yes, yes-no, yes-yes; without a question, all is "no".
    """

    feature: IntArray
    value: FloatArray


def leaf_of(feature: IntArray, member: BoolArray, node: IntArray, signature: IntArray) -> IntArray:
    """Leaf 0..3 in which each unit (node, signature) ends; ``member`` has the shape (S, G)."""
    root = _answer(feature[node, 0], member, signature)
    child = _answer(feature[node, 1 + root.astype(np.int64)], member, signature)
    return 2 * root.astype(np.int64) + child


def _answer(asked: IntArray, member: BoolArray, signature: IntArray) -> BoolArray:
    if member.shape[1] == 0:
        return np.zeros(len(asked), dtype=bool)
    return np.asarray(member[signature, np.maximum(asked, 0)] & (asked >= 0))


@dataclass(frozen=True, eq=False)
class GroupTreeLearner:
    """Grows a tree for every node from units (node, signature) in one pass a level of depth.

    Parameters
    ----------
    membership : ndarray of bool, shape (S, G)
    signature : ndarray of int, shape (U,)
        Signature of each unit.
    pairs : tuple of ndarray of int
        Every (group, unit) pair, as :func:`mcspark.core.baselines.units.group_pairs` gives them.
    depth : int
        1 or 2.
    min_rows : float
        Neither side of a split may have fewer rows.
    """

    membership: BoolArray
    signature: IntArray
    pairs: tuple[IntArray, IntArray]
    depth: int
    min_rows: float

    def grow(self, sums: Sums, node: IntArray, n_nodes: int) -> GroupTrees:
        """Trees for units with these sums (3, U), each in the node of its place (U,)."""
        group, owner = self.pairs
        key = node[owner] * self.membership.shape[1] + group
        total = _by(node, sums, n_nodes)
        by_group = self._by_group(key, owner, sums, n_nodes)
        root, _ = best_split(by_group, total, self.min_rows)
        feature = np.full((n_nodes, 3), -1, dtype=np.int64)
        feature[:, 0] = root
        if self.depth > 1:
            yes = _answer(root[node], self.membership, self.signature)
            yes_total = _by(node[yes], sums[:, yes], n_nodes)
            inner = np.flatnonzero(yes[owner])
            yes_groups = self._by_group(key[inner], owner[inner], sums, n_nodes)
            split = root >= 0
            for side, inside, whole in (
                (1, by_group - yes_groups, total - yes_total),
                (2, yes_groups, yes_total),
            ):
                child, _ = best_split(inside, whole, self.min_rows)
                feature[:, side] = np.where(split, child, -1)
        leaf = leaf_of(feature, self.membership, node, self.signature)
        leaf_sums = _by(node * 4 + leaf, sums, n_nodes * 4)
        value = np.divide(leaf_sums[2], leaf_sums[1], out=np.zeros(n_nodes * 4), where=leaf_sums[1] > 0)
        return GroupTrees(feature, value.reshape(n_nodes, 4))

    def _by_group(self, key: IntArray, owner: IntArray, sums: Sums, n_nodes: int) -> Sums:
        n_groups = self.membership.shape[1]
        flat = [np.bincount(key, row[owner], n_nodes * n_groups) for row in sums]
        return np.asarray(flat, dtype=np.float64).reshape(3, n_nodes, n_groups)


def _by(key: IntArray, sums: Sums, length: int) -> Sums:
    return np.asarray([np.bincount(key, row, length) for row in sums], dtype=np.float64)

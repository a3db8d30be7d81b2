"""SquareLev.R of Duffy and Helmbold with trees of depth 2 on (score, groups); paper, algorithm 2.

Each step fits a tree to the centred residuals ``r - mean(r)``, where ``r = y - f - F``, and adds ``α``
times the tree to F. The edge ``ε`` is the correlation of tree and residuals, ``α = ε |r - mean(r)| /
|tree - mean(tree)|``, and the variance of the residuals falls by exactly ``1 - ε²`` (paper, proposition on
the convergence rate). Trees are greedy CART on the score bins and the groups, exact on cells, since F is
constant within one. A tree whose leaves are mean residuals has α = 1; α is computed all the same.

The variance is that of rows: what rows of one cell differ by is in it. F is fixed up to a constant, which
the mean residual provides at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mcspark.core.baselines.method import Method, Settings, chosen, halves
from mcspark.core.baselines.plain import read_float, read_floats, read_int, read_ints
from mcspark.core.baselines.score_tree import ScoreTreeLearner, leaf_of
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.groups import MAX_GROUPS
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.model.additive import MAX_VALUE, AdditiveForm, BoolArray
from mcspark.core.model.stages import Stage, Stages
from mcspark.core.model.tree import Tree

_LEAST_SPREAD = 1e-12
"""A tree whose values, on the scale of scores, spread less is made of rounding, and α would be anything."""

_NUMERICAL = 2
"""LightGBM's decision_type of a numerical split."""


@dataclass(frozen=True, eq=False)
class SquarelevFit:
    """``clip(f + intercept + Σ_t α_t tree_t(f, g), 0, 1)``.

    Parameters
    ----------
    n_groups : int
    intercept : float
        Mean residual after the last step.
    alpha : ndarray, shape (T,)
        Weight of each tree.
    feature : ndarray of int, shape (T, 3)
        Feature asked at the root, on its left side, and on its right side: 0 the score, i + 1 group i, -1 no
        question, and then all rows go left.
    threshold : ndarray, shape (T, 3)
        Rows with ``feature <= threshold`` go left.
    value : ndarray, shape (T, 4)
        Leaves left-left, left-right, right-left, right-right.
    edge : ndarray, shape (T,)
        ε of each step, in (0, 1].
    variance : ndarray, shape (T + 1,)
        Variance of the residuals of the fitting rows before the first and after each step.
    """

    n_groups: int
    intercept: float
    alpha: FloatArray
    feature: IntArray
    threshold: FloatArray
    value: FloatArray
    edge: FloatArray
    variance: FloatArray

    def apply_signatures(
        self, score: FloatArray, signature: IntArray, membership_table: BoolArray
    ) -> FloatArray:
        """Calibrated scores (N,) of scores (N,); ``signature`` (N,) is a row of ``membership_table``."""
        names = tuple(str(i) for i in range(self.n_groups))
        stages = Stages((Stage("identity", self.form, len(self.alpha)),), names)
        return stages.apply_signatures(score, signature, membership_table)

    @cached_property
    def form(self) -> AdditiveForm:
        """The whole correction in additive form."""
        form = AdditiveForm.from_trees(self.trees(), self.n_groups)
        return replace(form, constant=form.constant + self.intercept)

    def trees(self) -> tuple[Tree, ...]:
        """The trees as LightGBM lays them out, α inside the leaf values."""
        return tuple(map(_as_tree, self.feature, self.threshold, self.value * self.alpha[:, None]))

    @property
    def variance_bound(self) -> FloatArray:
        """``Var_0 Π (1 - ε²)`` after each step, shape (T + 1,): the variance, up to rounding."""
        left = np.cumprod(np.concatenate(([1.0], 1 - self.edge**2)))
        return np.asarray(self.variance[0] * left, dtype=np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS}
        return {"n_groups": self.n_groups, "intercept": self.intercept, **arrays}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> SquarelevFit:
        """Inverse of :meth:`to_dict`; ValueError on anything that is no such fit."""
        n_groups = read_int(plain, "n_groups", 0, MAX_GROUPS)
        alpha = read_floats(plain, "alpha", (None,), 0.0, 1e6)
        n = len(alpha)
        return cls(
            n_groups,
            read_float(plain, "intercept", -MAX_VALUE, MAX_VALUE),
            alpha,
            read_ints(plain, "feature", (n, 3), -1, n_groups),
            read_floats(plain, "threshold", (n, 3), -1.0, 1.0),
            read_floats(plain, "value", (n, 4), -1e6, 1e6),
            read_floats(plain, "edge", (n,), 0.0, 1.0),
            read_floats(plain, "variance", (n + 1,), 0.0, MAX_VALUE),
        )


_ARRAYS = ("alpha", "feature", "threshold", "value", "edge", "variance")


def fit_squarelev(
    cells_fit: Cells,
    cells_stop: Cells,
    *,
    max_rounds: int = 500,
    patience: int = 50,
    min_rows_in_leaf: int = 20,
) -> SquarelevFit:
    """Fit on ``cells_fit``; keep the trees up to the lowest loss on ``cells_stop``.

    Parameters
    ----------
    cells_fit, cells_stop : Cells
        Of the same bins. Without weight in ``cells_stop`` all trees are kept.
    max_rounds : int
        Most trees.
    patience : int
        Give up after this many trees without a lower held-out loss.
    min_rows_in_leaf : int
        A leaf of fewer rows is not made.
    """
    if cells_fit.bins != cells_stop.bins:
        raise ValueError("the cells to fit and the cells to stop on must have the same bins")
    cells_fit = cells_fit.take(cells_fit.weight > 0)
    learner = ScoreTreeLearner(cells_fit, min_rows_in_leaf)
    residuals = _Residuals(cells_fit)
    held_out = _Residuals(cells_stop)
    nodes: list[IntArray] = []
    values: list[FloatArray] = []
    alphas, edges = [], []
    variances, intercepts = [residuals.variance()], [residuals.mean()]
    lowest, kept = held_out.loss(intercepts[0]), 0
    while len(nodes) < max_rounds and residuals.total > 0:
        node, value, leaf = learner.grow(residuals.sums - residuals.mean() * residuals.weight)
        edge, alpha = residuals.edge(value[leaf])
        if edge <= 0:
            break
        nodes.append(node)
        values.append(value)
        alphas.append(alpha)
        edges.append(edge)
        residuals.add(alpha * value[leaf])
        held_out.add(alpha * value[leaf_of(node, cells_stop)])
        variances.append(residuals.variance())
        intercepts.append(residuals.mean())
        loss = held_out.loss(intercepts[-1])
        if held_out.total <= 0 or loss < lowest:
            lowest, kept = loss, len(nodes)
        elif len(nodes) - kept >= patience:
            break
    split = np.asarray(nodes[:kept], dtype=np.int64).reshape(kept, 3, 2)
    return SquarelevFit(
        n_groups=len(cells_fit.groups),
        intercept=intercepts[kept],
        alpha=np.asarray(alphas[:kept], dtype=np.float64),
        feature=split[:, :, 0],
        threshold=_thresholds(split, cells_fit.bins.edges()),
        value=np.asarray(values[:kept], dtype=np.float64).reshape(kept, 4),
        edge=np.asarray(edges[:kept], dtype=np.float64),
        variance=np.asarray(variances[: kept + 1], dtype=np.float64),
    )


class _Residuals:
    """Residuals of the rows behind cells under a correction F that is one value a cell, shape (C,)."""

    def __init__(self, cells: Cells) -> None:
        self.weight = cells.weight
        self.total = float(cells.weight.sum())
        self._label = cells.label - cells.score
        self._square = float((cells.score_sq - 2 * cells.score_label + cells.label_sq).sum())
        self._correction = np.zeros(len(cells))
        self.sums = self._label

    def add(self, change: FloatArray) -> None:
        """Add to F."""
        self._correction = self._correction + change
        self.sums = self._label - self._correction * self.weight

    def mean(self) -> float:
        return float(self.sums.sum() / self.total) if self.total > 0 else 0.0

    def variance(self) -> float:
        return self.loss(self.mean())

    def loss(self, shift: float) -> float:
        """Mean of ``(y - f - F - shift)²`` over the rows; 0 without weight."""
        if self.total <= 0:
            return 0.0
        correction = self._correction + shift
        square = self._square - (correction * (self._label + self.sums - shift * self.weight)).sum()
        return float(max(square, 0.0) / self.total)

    def edge(self, tree: FloatArray) -> tuple[float, float]:
        """ε and α of a tree that is one value a cell; 0 and 0 for one that is constant but for rounding."""
        mean = (tree * self.weight).sum() / self.total
        spread = ((tree - mean) ** 2 * self.weight).sum() / self.total
        shared = ((tree - mean) * self.sums).sum() / self.total
        scale = np.sqrt(spread * self.variance())
        if scale <= 0 or spread <= _LEAST_SPREAD**2:
            return 0.0, 0.0
        return float(min(shared / scale, 1.0)), float(shared / spread)


def _thresholds(split: IntArray, edges: FloatArray) -> FloatArray:
    """Thresholds of ``feature <= threshold``: for the score, the greatest double below the bin's edge."""
    below = np.nextafter(edges[np.maximum(split[:, :, 1], 0)], -np.inf)
    return np.where(split[:, :, 0] == 0, below, 0.5)


def _as_tree(feature: IntArray, threshold: FloatArray, value: FloatArray) -> Tree:
    """A tree of up to three questions in LightGBM's numbering, leaves from left to right."""
    asked: list[int] = []
    children: list[list[int]] = []
    leaves: list[int] = []
    if feature[0] < 0:
        leaves.append(0)
    else:
        asked.append(0)
        children.append([])
        for side in (0, 1):
            if feature[1 + side] < 0:
                leaves.append(2 * side)
                children[0].append(-len(leaves))
            else:
                children[0].append(len(asked))
                asked.append(1 + side)
                leaves += [2 * side, 2 * side + 1]
                children.append([1 - len(leaves), -len(leaves)])
    left, right = np.asarray(children, dtype=np.int64).reshape(-1, 2).T
    return Tree(
        split_feature=feature[asked],
        threshold=threshold[asked],
        left_child=left,
        right_child=right,
        leaf_value=value[leaves],
        decision_type=np.full(len(asked), _NUMERICAL, dtype=np.int64),
    )


def _learn(cells: Cells, settings: Settings) -> SquarelevFit:
    fit, stop = halves(cells)
    return fit_squarelev(fit, stop, **chosen(settings, "max_rounds", "patience", "min_rows_in_leaf"))


METHOD = Method("squarelev", "SquareLev.R", _learn, SquarelevFit.from_dict)

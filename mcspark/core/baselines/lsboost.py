"""LSBoost: on every level set a weak tree of the groups, a step towards it, and back to the grid.

Globus-Harris et al. (paper, section on the baselines and its appendix). In each round a regression tree
of the groups is fitted to the labels of each level set; its rows move to
``round((1 - learning_rate) · v + learning_rate · tree)``, all level sets at once. As in the code of that
paper's authors, a level set moves only if held-out rows agree. Our choices where it is left open:

- held-out rows agree if the step, after rounding, lowers the squared loss of the level set's held-out
  rows at all; so the held-out loss never rises, and no best round has to be looked for;
- the last round is rounded to the grid like every other;
- a subsample is drawn for each round by thinning: of the n rows of a cell Binomial(n, subsample) are kept,
  and the sums of the cell shrink by that share. For cells of one row this is a sample of rows; in larger
  cells the mean label stays, so the trees vary a little less than on sampled rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from mcspark.core.baselines.method import Method, Setting, Settings, chosen, halves
from mcspark.core.baselines.plain import MAX_LEVELS, read_int, read_ints
from mcspark.core.baselines.units import Replayed, Units, group_pairs
from mcspark.core.baselines.weak_tree import GroupTreeLearner, GroupTrees, Sums, leaf_of
from mcspark.core.cells.cells import Cells, distinct_signatures
from mcspark.core.cells.groups import MAX_GROUPS
from mcspark.core.cells.levels import IntArray, level_of_mean, level_value
from mcspark.core.model.additive import BoolArray


@dataclass(frozen=True, eq=False)
class LsboostFit(Replayed):
    """Rounds of one tree a level, replayed in order: the leaf of a row says its next level.

    Parameters
    ----------
    m, n_groups : int
        Number of levels and of groups.
    feature : ndarray of int, shape (T, m, 3)
        Groups asked by the tree of each round and level, as in :class:`~.weak_tree.GroupTrees`; -1: none.
    target : ndarray of int, shape (T, m, 4)
        Next level of each leaf.
    """

    m: int
    n_groups: int
    feature: IntArray
    target: IntArray

    def _replay(self, member: BoolArray, signature: IntArray, level: IntArray) -> IntArray:
        for feature, target in zip(self.feature, self.target, strict=True):
            level = target[level, leaf_of(feature, member, level, signature)]
        return level

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "m": self.m,
            "n_groups": self.n_groups,
            "feature": self.feature.tolist(),
            "target": self.target.tolist(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> LsboostFit:
        """Inverse of :meth:`to_dict`; ValueError on anything that is no such fit."""
        m, n_groups = read_int(plain, "m", 1, MAX_LEVELS), read_int(plain, "n_groups", 0, MAX_GROUPS)
        feature = read_ints(plain, "feature", (None, m, 3), -1, n_groups - 1)
        target = read_ints(plain, "target", (len(feature), m, 4), 0, m - 1)
        return cls(m, n_groups, feature, target)


def fit_lsboost(
    cells_fit: Cells,
    cells_stop: Cells,
    m: int,
    *,
    depth: int = 1,
    learning_rate: float = 1.0,
    subsample: float = 1.0,
    seed: int = 1,
    max_rounds: int = 100,
    patience: int = 10,
    min_rows_in_leaf: int = 1,
) -> LsboostFit:
    """Fit on ``cells_fit``; ``cells_stop`` decides which level sets move, and when it is over.

    Parameters
    ----------
    cells_fit, cells_stop : Cells
        Without weight in ``cells_stop``, ``cells_fit`` decides.
    m : int
        Number of levels; divides ``bins.base`` of both.
    depth : int
        Depth of the trees, 1 or 2.
    learning_rate : float
        In (0, 1]. A step shorter than half a level ends where it began.
    subsample : float
        Share of the rows each round's trees are fitted to, in (0, 1].
    seed : int
        Of the subsamples; the same seed and cells give the same fit.
    max_rounds : int
    patience : int
        Give up after this many rounds in which nothing moved; with all rows, after the first.
    min_rows_in_leaf : int
        A leaf of fewer rows is not made.
    """
    if depth not in (1, 2):
        raise ValueError(f"depth must be 1 or 2, got {depth}")
    if not (0 < learning_rate <= 1 and 0 < subsample <= 1):
        raise ValueError(
            f"learning_rate and subsample must be in (0, 1], got {learning_rate} and {subsample}"
        )
    fit = Units.from_cells(cells_fit, m)
    stop = Units.from_cells(cells_stop, m)
    judge = stop if len(stop) else fit
    pairs = group_pairs(fit.membership, fit.signature)
    learner = GroupTreeLearner(fit.membership, fit.signature, pairs, depth, min_rows_in_leaf)
    sample = Subsample(cells_fit, fit, subsample, seed)
    level, judge_level = fit.level, judge.level
    features, targets, idle = [], [], 0
    for _ in range(max_rounds):
        trees = learner.grow(sample.draw(), level, m)
        target = _targets(trees, learning_rate, m)
        feature, target = _agreed(trees.feature, target, judge, judge_level)
        moves = bool(np.any(target != np.arange(m)[:, None]))
        idle = 0 if moves else idle + 1
        if moves:
            features.append(feature)
            targets.append(target)
            level = target[level, leaf_of(feature, fit.membership, level, fit.signature)]
            judge_level = target[
                judge_level, leaf_of(feature, judge.membership, judge_level, judge.signature)
            ]
        elif subsample == 1 or idle >= patience:
            break
    shape = (len(features), m)
    return LsboostFit(
        m,
        len(cells_fit.groups),
        np.asarray(features, dtype=np.int64).reshape(*shape, 3),
        np.asarray(targets, dtype=np.int64).reshape(*shape, 4),
    )


def _targets(trees: GroupTrees, learning_rate: float, m: int) -> IntArray:
    """Level to which each leaf of each level's tree steps, shape (m, 4)."""
    here = level_value(np.arange(m), m)[:, None]
    value = (1 - learning_rate) * here + learning_rate * trees.value
    return level_of_mean(value, m)


def _agreed(feature: IntArray, target: IntArray, judge: Units, level: IntArray) -> tuple[IntArray, IntArray]:
    """The trees of the level sets whose loss falls on the judging units; the others stay where they are."""
    m = judge.m
    new = target[level, leaf_of(feature, judge.membership, level, judge.signature)]
    before, after = level_value(level, m), level_value(new, m)
    change = (after**2 - before**2) * judge.weight - 2 * (after - before) * judge.label
    total = np.bincount(level, weights=change, minlength=m)
    weight = np.bincount(level, weights=judge.weight, minlength=m)
    agreed = total < -1e-12 * weight
    stay = np.repeat(np.arange(m)[:, None], 4, axis=1)
    return np.where(agreed[:, None], feature, -1), np.where(agreed[:, None], target, stay)


class Subsample:
    """Sums (3, U) of the rows that a round's trees are fitted to, a new draw each time.

    Parameters
    ----------
    cells : Cells
    units : Units
        Of these cells.
    share : float
        Of the rows, in (0, 1].
    seed : int
    """

    def __init__(self, cells: Cells, units: Units, share: float, seed: int) -> None:
        self._whole: Sums = np.stack([units.n, units.weight, units.label])
        self._share = share
        # The draws go with the content of the cells: neither their order nor that of the signatures matters.
        _, content = distinct_signatures(cells.membership)
        order = np.lexsort((cells.bin, content[cells.signature]))
        kept = order[units.of_cell[order] >= 0]
        self._unit = units.of_cell[kept]
        self._rows = cells.n[kept].astype(np.int64)
        self._mean = np.stack([cells.weight[kept], cells.label[kept]]) / np.maximum(self._rows, 1)
        self._rng = np.random.default_rng(seed)

    def draw(self) -> Sums:
        """Rows, Σw and Σw·y of each unit in the next draw."""
        if self._share == 1:
            return self._whole
        rows = self._rng.binomial(self._rows, self._share)
        values = (rows, *(self._mean * rows))
        length = self._whole.shape[1]
        return np.stack([np.bincount(self._unit, weights=value, minlength=length) for value in values])


_SWEPT = ("depth", "learning_rate", "subsample")


def _learn(cells: Cells, settings: Settings) -> LsboostFit:
    fit, stop = halves(cells)
    others = chosen(settings, "learning_rate", "subsample", "seed", "max_rounds", "patience")
    return fit_lsboost(fit, stop, settings["grid"], depth=int(settings.get("depth", 1)), **others)


def _own(settings: Settings) -> tuple[Setting, ...]:
    return (tuple((name, settings[name]) for name in _SWEPT),)


METHOD = Method(
    "lsboost", "LSBoost", _learn, LsboostFit.from_dict,
    swept=tuple(
        tuple(zip(_SWEPT, values, strict=True))
        for values in product((1, 2), (0.1, 0.3, 1.0), [k / 10 for k in range(1, 11)])
    ),
    own=_own,
    by_grid=True,
)  # fmt: skip

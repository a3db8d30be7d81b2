"""Multicalibration and multiaccuracy error (paper, definition 2.1), from cells and from rows.

Both are averages over all rows, not over the rows of the group: a group's error is weighted by its share,
as the probabilities ``Pr[f = v, g = 1]`` of the definition demand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcspark.core.cells.levels import FloatArray, level_value
from mcspark.core.cells.summed import Summed


@dataclass(frozen=True)
class LevelErrors:
    """Errors of the predictor discretized on the grid of ``m`` levels.

    Attributes
    ----------
    m : int
    mc, ma : ndarray, shape (G,), range [0, 1]
        Multicalibration and multiaccuracy error of each group; 0 for a group without weight.
    too_small : ndarray of bool, shape (G,)
        Groups with too few rows, or no weight; they are left out of the two maxima.
    mc_error, ma_error : float or None
        Maximum over the groups that are large enough; None if there is none.
    worst_group : str or None
        The first group that attains ``mc_error``.
    level_sets : int
        Number of levels that hold any weight.
    loss : float or None
        Mean squared loss of the discretized predictor; None without any weight.
    """

    m: int
    mc: FloatArray
    ma: FloatArray
    too_small: NDArray[np.bool_]
    mc_error: float | None
    ma_error: float | None
    worst_group: str | None
    level_sets: int
    loss: float | None


@dataclass(frozen=True)
class GroupSummary:
    """What there is to say about one group; means are None where the group has no weight."""

    group: str
    rows: int
    share: float
    mean_score: float | None
    mean_label: float | None
    mc: float
    ma: float
    too_small: bool


def too_small_groups(cells: Summed, min_rows: int = 1) -> NDArray[np.bool_]:
    """Which groups hold fewer than ``min_rows`` rows, or no weight; shape (G,)."""
    rows = cells.group_sums("n").sum(axis=1)
    weight = cells.group_sums("weight").sum(axis=1)
    return np.asarray((rows < min_rows) | (weight <= 0), dtype=np.bool_)


def level_errors(cells: Summed, m: int, min_rows: int = 1) -> LevelErrors:
    """Errors of the ``m``-discretized predictor: a level counts with its middle, ``(2 k + 1) / (2 m)``.

    Parameters
    ----------
    cells : Summed
        Of the rows to judge, all roles alike.
    m : int
        Number of levels; must divide ``cells.bins.base``.
    min_rows : int
        Groups with fewer rows are marked and left out of the maxima.

    Raises
    ------
    ValueError
        If the grid is no union of the cells' bins.
    """
    total = cells.total("weight")
    gap = level_value(np.arange(m), m) * cells.group_sums("weight", m) - cells.group_sums("label", m)
    scale = 1 / total if total > 0 else 0.0
    mc, ma = np.abs(gap).sum(axis=1) * scale, np.abs(gap.sum(axis=1)) * scale
    small = too_small_groups(cells, min_rows)
    worst = int(np.argmax(np.where(small, -1.0, mc))) if not small.all() else None
    return LevelErrors(
        m=m,
        mc=mc,
        ma=ma,
        too_small=small,
        mc_error=None if worst is None else float(mc[worst]),
        ma_error=None if worst is None else float(ma[~small].max()),
        worst_group=None if worst is None else cells.groups[worst],
        level_sets=int(np.count_nonzero(cells.level_sums("weight", m) > 0)),
        loss=cells.loss(m) if total > 0 else None,
    )


def group_table(cells: Summed, errors: LevelErrors) -> list[GroupSummary]:
    """One summary a group, in the order of ``cells.groups``, beside its errors on one grid."""
    sums = {name: cells.group_sums(name).sum(axis=1) for name in ("n", "weight", "score", "label")}
    total = cells.total("weight")
    return [
        GroupSummary(
            group=name,
            rows=int(rows),
            share=float(weight / total) if total > 0 else 0.0,
            mean_score=float(score / weight) if weight > 0 else None,
            mean_label=float(label / weight) if weight > 0 else None,
            mc=float(errors.mc[i]),
            ma=float(errors.ma[i]),
            too_small=bool(errors.too_small[i]),
        )
        for i, (name, rows, weight, score, label) in enumerate(zip(cells.groups, *sums.values(), strict=True))
    ]


def calibration_error(
    values: FloatArray, labels: FloatArray, membership: NDArray[np.bool_], weight: FloatArray | None = None
) -> FloatArray:
    """Multicalibration error of each group for a predictor of finite range, on its own level sets.

    Parameters
    ----------
    values : ndarray, shape (N,), range [0, 1]
        Predictions; rows with equal values form a level set.
    labels : ndarray, shape (N,), range [0, 1]
    membership : ndarray of bool, shape (N, G)
    weight : ndarray, shape (N,), optional
        Non-negative; 1 if absent.

    Returns
    -------
    ndarray, shape (G,)
        Zeros if there is no weight at all. The paper's error is their maximum.
    """
    w = _weights(values, weight)
    distinct, level = np.unique(values, return_inverse=True)
    gap = w * (np.asarray(values) - labels)
    per_level = np.zeros((len(distinct), np.shape(membership)[1]))
    np.add.at(per_level, level.reshape(-1), gap[:, None] * membership)
    return np.asarray(np.abs(per_level).sum(axis=0) / _total(w))


def multiaccuracy_error(
    values: FloatArray, labels: FloatArray, membership: NDArray[np.bool_], weight: FloatArray | None = None
) -> FloatArray:
    """Multiaccuracy error of each group: :func:`calibration_error` with all rows in one level set."""
    w = _weights(values, weight)
    gap = w * (np.asarray(values) - labels)
    return np.asarray(np.abs(gap @ np.asarray(membership, dtype=np.float64)) / _total(w))


def _weights(values: FloatArray, weight: FloatArray | None) -> FloatArray:
    return np.ones(len(values)) if weight is None else np.asarray(weight, dtype=np.float64)


def _total(weight: FloatArray) -> float:
    total = float(weight.sum())
    return total if total > 0 else 1.0

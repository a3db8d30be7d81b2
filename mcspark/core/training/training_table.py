"""What one ensemble is trained on: cells made fewer, with the sums that the link's loss needs.

A cell stands at its mean score. The correction of a cell is the same for all its rows in the first round,
because the trees' thresholds are bin edges; in later rounds, and with the logit link, this is an
approximation as fine as the score bins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcspark.core.cells.cells import Cells, Role, effective_rows
from mcspark.core.cells.features import Features
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.model.stages import Link, logit

MOST_PLACES = 128
"""Places of the score that trees may tell apart, equally heavy. More of them only give noise more edges to
fit: the early-stopping loss turns sooner, and the ensemble ends up worse than with LightGBM's own 255."""

MOST_TRAINING_CELLS = 200_000
"""Where more cells are learned from, the places are halved until they are few enough, though not below
:data:`FEWEST_PLACES`: the cost of a fit stops growing, and the trees lose nothing that shows."""

FEWEST_PLACES = 32

MOST_LOGITS = 1.0
"""Most by which one tree may move the log-odds of a row. Near 0 and 1 the loss is all but flat: a Newton step
overshoots there, the next one overshoots more, and at a high learning rate the trees diverge."""


_ROUNDED = 1e-8
"""Scores of cells that differ by less differ by rounding: an edge between them would part equal rows."""


@dataclass(frozen=True)
class TreeSettings:
    """How one ensemble is grown; the defaults are the paper's (appendix, "Ours").

    Parameters
    ----------
    learning_rate : float, in (0, 1]
    feature_fraction : float, in (0, 1]
        Share of the features (the score and the groups) that each tree may use.
    max_trees : int
    early_stopping_rounds : int
        Trees without a lower early-stopping loss before the ensemble is cut at its best.
    link : {'identity', 'logit'}
        Squared loss on the residual, or cross-entropy starting from the score's log-odds.
    min_rows_in_leaf : int
        Fewest rows in a leaf; where weights are unequal, effective rows (:func:`rows_of_weight`).
    seed : int
    refit : bool
        Grow the trees again, as many as the early-stopping rows chose, on those rows too.
    least_gain : float
        What ``early_stopping_rounds`` trees must lower the early-stopping loss by, as a multiple of what one
        number fitted to those rows would lower it by chance. Without it the loss of a few rows may creep down
        for thousands of trees.
    monotone : bool
        The correction never falls where the score rises and the groups stay, so the calibrated score does not
        either (but for rounding of 1e-15).
    """

    learning_rate: float = 0.1
    feature_fraction: float = 1.0
    max_trees: int = 5000
    early_stopping_rounds: int = 50
    link: Link = "identity"
    min_rows_in_leaf: int = 20
    seed: int = 1
    refit: bool = False
    least_gain: float = 0.0
    monotone: bool = False

    @property
    def objective(self) -> str:
        """LightGBM's name of the loss."""
        return {"identity": "regression", "logit": "cross_entropy"}[self.link]

    @property
    def max_step(self) -> float:
        """Most that a leaf may hold before it is shrunk by the learning rate; 0 is no limit."""
        return MOST_LOGITS / self.learning_rate if self.link == "logit" else 0.0


@dataclass(frozen=True)
class TrainingTable:
    """What an ensemble is trained on, one row a cell.

    Parameters
    ----------
    place : ndarray of int, shape (C,)
        Place of the score, the first feature of the trees: a score bin, or several neighbouring ones.
    signature : ndarray of int, shape (C,)
        Row of ``membership``.
    membership : ndarray of bool, shape (S, G)
        The groups of each signature, the other features of the trees.
    target : ndarray, shape (C,)
        Mean residual, or mean label with the logit link.
    weight : ndarray, shape (C,)
        Positive; the fitting part weighs as much as it has effective rows.
    stop : ndarray of bool, shape (C,)
        Cells that only stop the boosting. None at all: ``max_trees`` are grown.
    offset : ndarray, shape (C,), optional
        Log-odds that the trees start from, with the logit link.
    min_weight_in_leaf : float
        Least sum of the loss's second derivatives in a leaf.
    rows : ndarray, shape (C,)
        Number of rows of each cell.
    unit : float
        Weight of a cell here over its weight in the table.
    place_of_bin : ndarray of int, optional
        Place of each score bin, in the first round.
    min_improvement : float
        Least by which the mean loss of the ``stop`` cells must fall to count as lower.
    features : Features, optional
        The columns of each signature that are the other features of the trees, in place of the groups.
    curvature : float
        Mean second derivative of the loss of a row.
    """

    place: IntArray
    signature: IntArray
    membership: NDArray[np.bool_]
    target: FloatArray
    weight: FloatArray
    stop: NDArray[np.bool_]
    offset: FloatArray | None
    min_weight_in_leaf: float
    rows: FloatArray
    unit: float
    place_of_bin: IntArray | None = None
    min_improvement: float = 0.0
    features: Features | None = None
    curvature: float = 1.0

    @property
    def shown(self) -> NDArray[Any]:
        """What each signature shows the trees beside the score, shape (S, F): its groups, or its columns."""
        return self.membership if self.features is None else self.features.values


Train = Callable[[TrainingTable, TreeSettings], str]
"""Trains one ensemble and returns LightGBM's text, cut at the best tree; feature 0 is the score bin."""


def training_table(cells: Cells, state: FloatArray, place: IntArray, settings: TreeSettings) -> TrainingTable:
    """The cells of equal place, signature and role as one row each.

    Parameters
    ----------
    cells : Cells
        Of the fitting and the early-stopping rows, each of some weight.
    state : ndarray, shape (C,)
        Score of each cell now.
    place : ndarray of int, shape (C,)
        Place of each cell to train on.
    settings : TreeSettings
    """
    number, one = cells.alike(place)

    def total(value: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(number, weights=value), dtype=np.float64)

    weight, rows = total(cells.weight), total(cells.n)
    stop = cells.role[one] == Role.early_stopping
    label, start = total(cells.label) / weight, total(state * cells.weight) / weight
    scale = rows_of_weight(cells.take(cells.role != Role.early_stopping))
    curvature = 1.0
    if settings.link == "logit":
        curvature = float(np.average(state * (1 - state), weights=cells.weight))
    return TrainingTable(
        place=place[one],
        signature=cells.signature[one],
        membership=cells.membership,
        target=np.clip(label, 0, 1) if settings.link == "logit" else label - start,
        weight=weight * scale,
        stop=stop,
        offset=logit(start) if settings.link == "logit" else None,
        min_weight_in_leaf=settings.min_rows_in_leaf * curvature,
        rows=rows,
        unit=float(scale),
        min_improvement=settings.least_gain * _gain_by_chance(cells, state, settings.link),
        features=cells.features,
        curvature=curvature,
    )


def _gain_by_chance(cells: Cells, state: FloatArray, link: Link) -> float:
    """What one number fitted to the early-stopping rows lowers their mean loss by, if it should be zero."""
    stop = cells.role == Role.early_stopping
    if not stop.any():
        return 0.0
    weight = cells.weight[stop].sum()
    rows = float(effective_rows(weight, cells.weight_sq[stop].sum(), cells.n[stop].sum()))
    if link == "logit":
        return 0.5 / rows
    square = cells.label_sq - 2 * state * cells.label + state**2 * cells.weight
    return float(square[stop].sum() / weight / rows)


def rows_of_weight(cells: Cells) -> float:
    """Effective rows that a weight of 1 stands for, Σw / Σw²: 1 where no row has a weight of its own.

    LightGBM knows the size of a leaf by its weight alone. Scaled by this, the rows weigh (Σw)² / Σw² in all:
    their number where all weigh the same, and less the more unequal the weights are. Neither survey weights
    near 73 nor shares that sum to 1 change what a least number of rows means.
    """
    weight = cells.weight.sum()
    return float(effective_rows(weight, cells.weight_sq.sum(), cells.n.sum()) / weight)


def places_to_train_on(cells: Cells, place: IntArray, count: int) -> IntArray:
    """Place to train on of each of ``count`` finer ones, in order; ``place`` is each cell's finer one."""
    weight = np.bincount(place, weights=cells.weight, minlength=count)
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()

    def at_most(wanted: int) -> IntArray:
        if count <= wanted:
            return np.arange(count)
        # A hair of slack: in another unit the weights differ in their last digits.
        heavy = np.minimum((middle * wanted + 1e-9).astype(np.int64), wanted - 1)
        return np.cumsum(np.diff(heavy, prepend=heavy[0]) > 0)

    wanted = MOST_PLACES
    merged = at_most(wanted)
    while wanted > FEWEST_PLACES and len(cells.alike(merged[place])[1]) > MOST_TRAINING_CELLS:
        wanted //= 2
        merged = at_most(wanted)
    return merged


def lighter(cells: Cells) -> Cells:
    """The same rows in fewer cells, as far as they are merged to be trained on; each has one of its bins."""
    return cells.merged(places_to_train_on(cells, cells.bin, cells.bins.n_bins)[cells.bin])


def told_apart(state: FloatArray) -> tuple[IntArray, FloatArray]:
    """A place for each distinct value, and the edges between them; values apart by rounding alone are one."""
    values, inverse = np.unique(state, return_inverse=True)
    middles = ((values[:-1] + values[1:]) / 2)[np.diff(values) > _ROUNDED]
    place = np.searchsorted(middles, values, side="right")
    return place[inverse.reshape(-1)], np.concatenate([[0.0], middles, [1.0]])

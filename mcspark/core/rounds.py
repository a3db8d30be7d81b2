"""Rounds of boosting on cells: train an ensemble, keep it if held-out rows say so, feed its output on.

The paper's method is one round with the identity link (algorithm 1). More rounds solve the cases in which
one does not saturate (the paper's counterexample); every round has to earn its place on the early-stopping
cells, so that a calibrator never does harm there.

A cell stands at its mean score. The correction of a cell is the same for all its rows in the first round,
because the trees' thresholds are bin edges; in later rounds, and with the logit link, this is an
approximation as fine as the score bins. What is shipped is always evaluated on rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mcspark.core.additive import AdditiveForm
from mcspark.core.cells import Cells, Role
from mcspark.core.levels import FloatArray, IntArray
from mcspark.core.lightgbm_text import (
    feature_names,
    map_thresholds,
    parse_trees,
    score_threshold,
    with_feature_names,
)
from mcspark.core.stages import Link, SignatureScorer, Stage, Stages, logit

AUTO_ROUNDS = 10
"""Most rounds of ``rounds: auto``."""

MOST_PLACES = 128
"""Places of the score that trees may tell apart, equally heavy. More of them only give noise more edges to
fit: the early-stopping loss turns sooner, and the ensemble ends up worse than with LightGBM's own 255."""

MOST_TRAINING_CELLS = 200_000
"""Where more cells are learned from, the places are halved until they are few enough, though not below
:data:`FEWEST_PLACES`: the cost of a fit stops growing, and the trees lose nothing that shows."""

FEWEST_PLACES = 32


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
        Fewest rows in a leaf, counted in weight.
    seed : int
    refit : bool
        Grow the trees again, as many as the early-stopping rows chose, on those rows too.
    """

    learning_rate: float = 0.1
    feature_fraction: float = 1.0
    max_trees: int = 5000
    early_stopping_rounds: int = 50
    link: Link = "identity"
    min_rows_in_leaf: int = 20
    seed: int = 1
    refit: bool = False


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
        Positive; a row of the fitting part weighs 1 on average, or more.
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


Train = Callable[[TrainingTable, TreeSettings], str]
"""Trains one ensemble and returns LightGBM's text, cut at the best tree; feature 0 is the score bin."""


@dataclass(frozen=True)
class Round:
    """What one round did, on the early-stopping rows.

    Parameters
    ----------
    trees : int
    loss_before, loss_after : float
        Mean squared loss.
    noise : float
        Standard error of the gain ``loss_before - loss_after``.
    kept : bool
        Whether the round became a stage.
    """

    trees: int
    loss_before: float
    loss_after: float
    noise: float
    kept: bool

    @property
    def gain(self) -> float:
        """Loss that the round saved."""
        return self.loss_before - self.loss_after


@dataclass(frozen=True)
class StagesFit:
    """Result of :func:`fit_stages`.

    Parameters
    ----------
    stages : Stages
    texts : tuple of str
        LightGBM text of each stage: features ``score`` and the groups, thresholds in score units.
    rounds : tuple of Round
        Every round that was tried, kept or not.
    """

    stages: Stages
    texts: tuple[str, ...]
    rounds: tuple[Round, ...]


Told = Callable[[int, Round], None]
"""Hears of each round as it ends, with its number from 1."""


def fit_stages(
    cells: Cells,
    settings: TreeSettings,
    train: Train,
    rounds: int | Literal["auto"] = 1,
    told: Told = lambda *_: None,
) -> StagesFit:
    """Fit a calibrator on the ``fit`` cells, each round stopped and judged on the ``early_stopping`` cells.

    Parameters
    ----------
    cells : Cells
    settings : TreeSettings
    train : callable
    rounds : int or 'auto'
        How many rounds; ``auto`` goes on until the gain is within one standard error of nothing. With a
        number, a round is kept if it lowers the held-out loss at all.
    told : callable
    """
    cells = cells.of_role(Role.fit, Role.early_stopping)
    cells = cells.take(cells.weight > 0)
    stages, log = Stages((), cells.groups), []
    texts: list[str] = []
    state = cells.mean_score
    if not _both_parts(cells):
        return StagesFit(stages, (), ())
    for _ in range(AUTO_ROUNDS if rounds == "auto" else rounds):
        stage, text = _one_round(cells, state, settings, train, first=not stages.stages)
        after = SignatureScorer(Stages((stage,), cells.groups), cells.membership)(state, cells.signature)
        result = judge(cells.of_role(Role.early_stopping), *_stopping(cells, state, after), stage.trees)
        kept = result.gain > (result.noise if rounds == "auto" else 0.0)
        log.append(replace(result, kept=kept))
        told(len(log), log[-1])
        if not kept:
            break
        stages, state = stages.then(stage), after
        texts.append(text)
    if settings.refit:
        stages, texts = _refit(cells, stages, settings, train)
    return StagesFit(stages, tuple(texts), tuple(log))


def _refit(cells: Cells, chosen: Stages, settings: TreeSettings, train: Train) -> tuple[Stages, list[str]]:
    """The same stages with as many trees each, grown on all of these cells; nothing is judged again."""
    cells = replace(cells, role=np.full(len(cells), Role.fit, dtype=np.int64))
    stages, texts, state = Stages((), cells.groups), [], cells.mean_score
    for stage in chosen.stages:
        same = replace(settings, link=stage.link, max_trees=stage.trees)
        again, text = _one_round(cells, state, same, train, first=not stages.stages)
        state = SignatureScorer(Stages((again,), cells.groups), cells.membership)(state, cells.signature)
        stages = stages.then(again)
        texts.append(text)
    return stages, texts


@dataclass(frozen=True)
class Saturation:
    """Loss saturation (paper, assumption 3.5 and table 1), on the test cells.

    Parameters
    ----------
    loss : float
        Mean squared loss of the calibrated score.
    loss_second : float
        The same after one more round.
    """

    loss: float
    loss_second: float

    @property
    def epsilon_loss(self) -> float:
        """``ε̂_loss = ℓ(f_cal) − ℓ(p(f_cal))``; negative if the second pass only fits noise."""
        return self.loss - self.loss_second


def check_saturation(cells: Cells, stages: Stages, settings: TreeSettings, train: Train) -> Saturation | None:
    """Run the calibrator once more on its own output and measure what that gains on the test cells."""
    cells = cells.take(cells.weight > 0)
    learning = cells.of_role(Role.fit, Role.early_stopping)
    test = cells.of_role(Role.test)
    if not _both_parts(learning) or not len(test):
        return None
    state = stages.apply_signatures(learning.mean_score, learning.signature, cells.membership)
    stage, _ = _one_round(learning, state, settings, train, first=not stages.stages)
    before = stages.apply_signatures(test.mean_score, test.signature, cells.membership)
    after = Stages((stage,), cells.groups).apply_signatures(before, test.signature, cells.membership)
    return Saturation(loss_at(test, before), loss_at(test, after))


def loss_at(cells: Cells, state: FloatArray) -> float:
    """Mean squared loss if every row of a cell moves as its mean score does, to ``state``."""
    shift = state - cells.score / cells.weight
    square = (
        cells.score_sq - 2 * cells.score_label + cells.label_sq
        + 2 * shift * (cells.score - cells.label) + shift**2 * cells.weight
    )  # fmt: skip
    return float(square.sum() / cells.weight.sum())


def judge(cells: Cells, before: FloatArray, after: FloatArray, trees: int) -> Round:
    """Gain in loss from ``before`` to ``after`` on these cells, with its standard error."""
    mean = cells.score / cells.weight
    a, b = before - mean, after - mean
    # A row's gain is (a - b)(2 f + a + b - 2 y), with a and b the shifts of its cell.
    first = 2 * (cells.score - cells.label) / cells.weight + a + b
    residual_sq = (cells.score_sq - 2 * cells.score_label + cells.label_sq) / cells.weight
    second = 4 * residual_sq + (a + b) * (2 * first - (a + b))
    total = cells.weight.sum()
    gain = float((cells.weight * (a - b) * first).sum() / total)
    spread = (a - b) ** 2 * second - 2 * gain * (a - b) * first + gain**2
    noise = float(np.sqrt(max((cells.weight_sq * spread).sum(), 0.0)) / total)
    loss = loss_at(cells, before)
    return Round(trees, loss, loss - gain, noise, kept=False)


def _one_round(
    cells: Cells, state: FloatArray, settings: TreeSettings, train: Train, *, first: bool
) -> tuple[Stage, str]:
    if first:
        place, edges = cells.bin, cells.bins.edges()
    else:
        place, edges = _told_apart(state)
    merged = _places(cells, place, len(edges) - 1)
    edges = np.append(edges[:-1][np.flatnonzero(np.diff(merged, prepend=-1))], edges[-1])
    table = _training_table(cells, state, merged[place], settings)
    text = train(replace(table, place_of_bin=merged if first else None), settings)
    text = map_thresholds(text, 0, score_threshold(edges))
    text = with_feature_names(text, feature_names(len(cells.groups)))
    trees = parse_trees(text)
    return Stage(settings.link, AdditiveForm.from_trees(trees, len(cells.groups)), len(trees)), text


def _places(cells: Cells, place: IntArray, count: int) -> IntArray:
    """Place to train on of each of ``count`` finer ones, in the same order."""
    weight = np.bincount(place, weights=cells.weight, minlength=count)
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()

    def at_most(wanted: int) -> IntArray:
        if count <= wanted:
            return np.arange(count)
        heavy = np.minimum((middle * wanted).astype(np.int64), wanted - 1)
        return np.cumsum(np.diff(heavy, prepend=heavy[0]) > 0)

    wanted = MOST_PLACES
    merged = at_most(wanted)
    while wanted > FEWEST_PLACES and len(cells.alike(merged[place])[1]) > MOST_TRAINING_CELLS:
        wanted //= 2
        merged = at_most(wanted)
    return merged


def lighter(cells: Cells) -> Cells:
    """The same rows in fewer cells, as far as they are merged to be trained on; each has one of its bins."""
    return cells.merged(_places(cells, cells.bin, cells.bins.n_bins)[cells.bin])


def _training_table(
    cells: Cells, state: FloatArray, place: IntArray, settings: TreeSettings
) -> TrainingTable:
    number, one = cells.alike(place)

    def total(value: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(number, weights=value), dtype=np.float64)

    weight, rows = total(cells.weight), total(cells.n)
    stop = cells.role[one] == Role.early_stopping
    label, start = total(cells.label) / weight, total(state * cells.weight) / weight
    # The least leaf is counted in weight, so that weight 2 is the row twice. Only weights that are parts of a
    # row on average, such as those that sum to 1, are scaled up to one a row: no leaf could be grown else.
    scale = max(1.0, rows[~stop].sum() / weight[~stop].sum())
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
    )


def _told_apart(state: FloatArray) -> tuple[IntArray, FloatArray]:
    """A place for each distinct value, and the edges between them."""
    values, inverse = np.unique(state, return_inverse=True)
    middles = np.unique((values[:-1] + values[1:]) / 2)
    place = np.searchsorted(middles, values, side="right")
    return place[inverse.reshape(-1)], np.concatenate([[0.0], middles, [1.0]])


def _stopping(cells: Cells, before: FloatArray, after: FloatArray) -> tuple[FloatArray, FloatArray]:
    stop = cells.role == Role.early_stopping
    return before[stop], after[stop]


def _both_parts(cells: Cells) -> bool:
    return all((cells.role == r).any() for r in (Role.fit, Role.early_stopping))

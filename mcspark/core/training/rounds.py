"""Rounds of boosting on cells: train an ensemble, keep it if held-out rows say so, feed its output on.

The paper's method is one round with the identity link (algorithm 1). More rounds solve the cases in which
one does not saturate (the paper's counterexample); every round has to earn its place on the early-stopping
cells, so that a calibrator never does harm there. What is shipped is always evaluated on rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import FloatArray
from mcspark.core.model.additive import AdditiveForm
from mcspark.core.model.lightgbm_text import (
    feature_names,
    map_thresholds,
    missing_with_most,
    parse_trees,
    score_threshold,
    with_feature_names,
)
from mcspark.core.model.stages import SignatureScorer, Stage, Stages
from mcspark.core.training.training_table import (
    Train,
    TreeSettings,
    places_to_train_on,
    told_apart,
    training_table,
)

AUTO_ROUNDS = 10
"""Most rounds of ``rounds: auto``."""


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
    capped : bool
        Whether the most trees ended the boosting, before the early-stopping rows did.
    """

    trees: int
    loss_before: float
    loss_after: float
    noise: float
    kept: bool
    capped: bool = False

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
    refitted : bool
        Whether the stages are those that were grown again, on the early-stopping rows too.
    """

    stages: Stages
    texts: tuple[str, ...]
    rounds: tuple[Round, ...]
    refitted: bool = False


Told = Callable[[int, Round], None]
"""Hears of each round as it ends, with its number from 1."""


def fit_stages(
    cells: Cells,
    settings: TreeSettings,
    train: Train,
    rounds: int | Literal["auto"] = 1,
    on_round: Told = lambda *_: None,
    begun: StagesFit | None = None,
    least: float = 0.0,
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
    on_round : callable
    begun : StagesFit, optional
        Stages on these cells to go on from; they count as rounds.
    least : float
        Gain that a round needs in any case to be kept.
    """
    cells = learned_from(cells)
    if not both_parts(cells):
        return StagesFit(Stages((), cells.learned_names), (), ())
    stages, log = (begun.stages, list(begun.rounds)) if begun else (Stages((), cells.learned_names), [])
    texts = list(begun.texts) if begun else []
    state = cells.mean_score
    if stages.stages:
        state = stages.apply_signatures(state, cells.signature, cells.learned)
    for _ in range(len(log), AUTO_ROUNDS if rounds == "auto" else rounds):
        stage, text = _one_round(cells, state, settings, train, first=not stages.stages)
        after = SignatureScorer(Stages((stage,), cells.learned_names), cells.learned)(state, cells.signature)
        result = judge(cells.of_role(Role.early_stopping), *_stopping(cells, state, after), stage.trees)
        kept = result.gain > max(result.noise if rounds == "auto" else 0.0, least)
        capped = stage.trees + settings.early_stopping_rounds > settings.max_trees
        log.append(replace(result, kept=kept, capped=capped))
        on_round(len(log), log[-1])
        if not kept:
            break
        stages, state = stages.then(stage), after
        texts.append(text)
    found = StagesFit(stages, tuple(texts), tuple(log))
    return refitted(cells, found, settings, train) if settings.refit and texts else found


def refitted(cells: Cells, chosen: StagesFit, settings: TreeSettings, train: Train) -> StagesFit:
    """The same stages with as many trees each, grown on all of these cells.

    The early-stopping rows, of which they have learned now, cannot praise them; but if even there the loss is
    higher than it was, the trees have gone astray, and the stages stay as they were.
    """
    every = replace(cells, role=np.full(len(cells), Role.fit, dtype=np.int64))
    chosen_state = chosen.stages.apply_signatures(cells.mean_score, cells.signature, cells.learned)
    stages, texts, state = Stages((), cells.learned_names), [], cells.mean_score
    for stage in chosen.stages.stages:
        same = replace(settings, link=stage.link, max_trees=stage.trees)
        again, text = _one_round(every, state, same, train, first=not stages.stages)
        state = SignatureScorer(Stages((again,), cells.learned_names), cells.learned)(state, cells.signature)
        stages = stages.then(again)
        texts.append(text)
    stopping = cells.of_role(Role.early_stopping)
    before, after = (loss_at(stopping, s) for s in _stopping(cells, chosen_state, state))
    return replace(chosen, stages=stages, texts=tuple(texts), refitted=True) if after <= before else chosen


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
    if not both_parts(learning) or not len(test):
        return None
    state = stages.apply_signatures(learning.mean_score, learning.signature, cells.learned)
    stage, _ = _one_round(learning, state, settings, train, first=not stages.stages)
    before = stages.apply_signatures(test.mean_score, test.signature, cells.learned)
    after = Stages((stage,), cells.learned_names).apply_signatures(before, test.signature, cells.learned)
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
        place, edges = told_apart(state)
    merged = places_to_train_on(cells, place, len(edges) - 1)
    edges = np.append(edges[:-1][np.flatnonzero(np.diff(merged, prepend=-1))], edges[-1])
    table = training_table(cells, state, merged[place], settings)
    text = train(replace(table, place_of_bin=merged if first else None), settings)
    text = map_thresholds(text, 0, score_threshold(edges))
    if cells.features is None:
        names = feature_names(len(cells.groups))
    else:
        names = feature_names(len(cells.features.sizes), "column")
        ordered = {i for i, is_ordered in enumerate(cells.features.ordered, start=1) if is_ordered}
        text = missing_with_most(text, ordered)
    text = with_feature_names(text, names)
    trees = parse_trees(text)
    return Stage(settings.link, AdditiveForm.from_trees(trees, cells.learned_sizes), len(trees)), text


def _stopping(cells: Cells, before: FloatArray, after: FloatArray) -> tuple[FloatArray, FloatArray]:
    stop = cells.role == Role.early_stopping
    return before[stop], after[stop]


def learned_from(cells: Cells) -> Cells:
    """The cells of the fitting and the early-stopping rows that have a weight."""
    cells = cells.of_role(Role.fit, Role.early_stopping)
    return cells.take(cells.weight > 0)


def both_parts(cells: Cells) -> bool:
    """Whether there is something to learn from, and something to stop on."""
    return all((cells.role == r).any() for r in (Role.fit, Role.early_stopping))

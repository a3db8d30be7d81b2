"""The loss on the cells as the trees were added, at a few dozen numbers of trees: for people to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import FloatArray
from mcspark.core.model.additive import AdditiveForm
from mcspark.core.model.lightgbm_text import parse_trees
from mcspark.core.model.stages import Link, Stages, corrected, logit
from mcspark.core.training.training_table import lighter

POINTS = 32
"""Numbers of trees at which the loss is computed, beside none; denser where the trees are few."""


@dataclass(frozen=True)
class CurvePoint:
    """Loss of one stage after its first ``trees`` trees.

    Attributes
    ----------
    stage, trees : int
    fit, early_stopping : float or None
        Mean loss that the trees were grown on: squared, or cross-entropy with the logit link. None where
        there are no such rows.
    """

    stage: int
    trees: int
    fit: float | None
    early_stopping: float | None


def training_curve(
    cells: Cells, stages: Stages, texts: Sequence[str], points: int = POINTS
) -> tuple[CurvePoint, ...]:
    """The curve of every stage, up to the tree at which it was cut.

    A cell stands at its mean score, and its spread within the cell is the same at every point: it counts in
    the loss of the first stage, as in :func:`mcspark.core.training.rounds.loss_at`.

    Parameters
    ----------
    cells : Cells
        Of all roles; those of the test rows are left alone.
    stages : Stages
    texts : sequence of str
        LightGBM text of each stage.
    points : int
        Most numbers of trees of a stage, beside none.
    """
    cells = cells.of_role(Role.fit, Role.early_stopping)
    cells = lighter(cells.take(cells.weight > 0))
    state = cells.mean_score
    found = []
    for number, (stage, text) in enumerate(zip(stages.stages, texts, strict=True)):
        trees = parse_trees(text)
        ends = np.unique(np.rint(len(trees) * (np.arange(points + 1) / points) ** 2).astype(int))
        correction, done = np.zeros(len(cells)), 0
        for end in ends.tolist():
            if end > done:
                segment = AdditiveForm.from_trees(trees[done:end], cells.learned_sizes)
                correction += _on_cells(segment, cells, state)
                done = end
            found.append(CurvePoint(number, end, *_losses(cells, state, correction, stage.link)))
        state = corrected(state, correction, stage.link)
    return tuple(found)


def _on_cells(form: AdditiveForm, cells: Cells, state: FloatArray) -> FloatArray:
    """The form's correction of each cell; the work is a cell's handful of groups, not all groups."""
    group, owner = cells.learned_pairs
    place = form.bins_of(state)
    moved = np.bincount(owner, weights=form.curves[group, place[owner]], minlength=len(cells))
    return np.asarray(form.base[place] + form.signature_offset(cells.learned)[cells.signature] + moved)


def _losses(
    cells: Cells, state: FloatArray, correction: FloatArray, link: Link
) -> tuple[float | None, float | None]:
    label = cells.label / cells.weight
    if link == "logit":
        odds = logit(state) + correction
        loss = np.logaddexp(0, odds) - label * odds
    else:
        shift = state + correction - cells.score / cells.weight
        square = (cells.score_sq - 2 * cells.score_label + cells.label_sq) / cells.weight
        loss = square + 2 * shift * (cells.score / cells.weight - label) + shift**2
    fit, stop = (
        float(np.average(loss[part], weights=cells.weight[part])) if part.any() else None
        for part in (cells.role == role for role in (Role.fit, Role.early_stopping))
    )
    return fit, stop

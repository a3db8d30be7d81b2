"""Scores of classes in a run: whether the projected vector is better, and the class that it names."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import reduce

import structlog
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mcspark.config.tables import TOP_CLASS
from mcspark.core.cells.cells import Role
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.classes import LEAST
from mcspark.core.metrics.metrics import Metrics
from mcspark.core.model.stages import Stages
from mcspark.data.rows.contract import class_of
from mcspark.ml.cells.cells import ScoredColumns
from mcspark.ml.cells.working import WORKING
from mcspark.ml.cluster.cluster_cells import Judged
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.pipelines.judging.measuring import cells_to_measure, measured, told_lead
from mcspark.pipelines.judging.result import Losses, ScoreResult, Vector
from mcspark.pipelines.reading.rows import Inputs, calibrated_rows
from mcspark.pipelines.run import Run
from mcspark.runtime.columns import column

log = structlog.get_logger(__name__)

_TOP, _HIT = "__top", "__hit"
_LOSS_BITS = 6
"""No row's loss is more than 2 to this, -log of :data:`LEAST`."""


def choose(run: Run, inputs: Inputs, models: Sequence[MulticalibratorModel]) -> Vector:
    """Keep the calibrators if the projected vector loses less on the rows that stopped the trees."""
    stopping = inputs.of_role(Role.early_stopping)
    with run.stage("classes", "compare the projected scores of the classes with those that came in"):
        losses = losses_of(inputs, calibrated_rows(stopping, models, projected=True), projected=True)
    better = losses.before is not None and losses.after is not None and losses.after < losses.before
    if not better:
        log.warning("the projected scores are no better: the scores of all classes ship as they are")
    return Vector(better, losses)


def losses_of(inputs: Inputs, frame: DataFrame, *, projected: bool | None) -> Losses:
    """Log losses of the labelled rows of a frame; sums are exact, so they depend on no order of rows.

    Only what sums to 1 has a log loss, so scores that are not ``projected`` are divided by their sum; None
    where there are no calibrated ones.
    """
    scale = inputs.scale.weight / 2**_LOSS_BITS
    weight = column(inputs.weight) if inputs.weight else F.lit(1.0)
    label = class_of(WORKING.label, frame.schema)
    own = [_own(inputs, label, [score.column for score in inputs.scores], projected=False)]
    if projected is not None:
        names = [score.calibrated for score in inputs.scores]
        own.append(_own(inputs, label, names, projected=projected))
    losses = [-F.log(F.least(F.greatest(score, F.lit(LEAST)), F.lit(1.0))) for score in own]
    sums = [F.sum(F.rint(loss * weight * F.lit(scale)).cast("long")) for loss in losses]
    total = F.sum(F.rint(weight * F.lit(scale)).cast("long"))
    row = frame.where(column(WORKING.label).isNotNull()).agg(total, *sums).first()
    assert row is not None  # an aggregate without keys has one row
    if not row[0]:
        return Losses(None)
    return Losses(*(found / row[0] for found in row[1:]))


def _own(inputs: Inputs, label: Column, names: Sequence[str], *, projected: bool) -> Column:
    """The score of the class that a row is of."""
    own = F.coalesce(*(F.when(label == F.lit(one), column(name)) for one, name in _classes(inputs, names)))
    if projected:
        return own
    total = reduce(Column.__add__, map(column, names))
    return F.when(total > 0, own / total).otherwise(F.lit(1.0 / len(names)))


def _classes(inputs: Inputs, names: Sequence[str]) -> list[tuple[str, str]]:
    """Each class and the column of its score."""
    return list(zip(inputs.scored.classes or (), names, strict=True))


def top_result(
    run: Run, inputs: Inputs, frame: DataFrame, groups: FittedGroups, *, calibrated: bool
) -> ScoreResult:
    """Metrics of the largest score of each row, against whether its class is the right one."""
    with (
        run.stage("measure", "measure the score of the class that is named"),
        ExitStack() as stack,
    ):
        columns = [[score.column for score in inputs.scores]]
        columns += [[score.calibrated for score in inputs.scores]] if calibrated else []
        cells = [
            stack.enter_context(_top_cells(run, inputs, frame, groups, names)).cells for names in columns
        ]
        lead = told_lead(run, *cells)
        found: dict[str, Metrics] = {}
        for stage, some in zip(("before", "after"), cells, strict=False):
            last = some is cells[-1]
            found[stage] = measured(run, some, intervals=last, lead=lead)
    return ScoreResult(TOP_CLASS, found)


def _top_cells(
    run: Run, inputs: Inputs, frame: DataFrame, groups: FittedGroups, names: Sequence[str]
) -> AbstractContextManager[Judged]:
    top = F.greatest(*map(column, names))
    named = F.coalesce(*(F.when(column(name) == top, F.lit(one)) for one, name in _classes(inputs, names)))
    label = class_of(WORKING.label, frame.schema)
    labelled = frame.where(column(WORKING.label).isNotNull())
    judged = labelled.withColumns({_TOP: top, _HIT: (named == label).cast("double")})
    columns = ScoredColumns(_TOP, _HIT, inputs.weight)
    return cells_to_measure(run, inputs, judged, columns, groups.measured)


def published(vector: Vector, found: Sequence[MulticalibratorModel]) -> list[MulticalibratorModel]:
    """The calibrators that are published: those that were learned, or some that change nothing."""
    return list(found) if vector.projected else [_unchanged(model) for model in found]


def _unchanged(model: MulticalibratorModel) -> MulticalibratorModel:
    """A calibrator for the same groups that changes no score."""
    found: MulticalibratorModel = model.copy()
    names = model.stages.groups if model.stages is not None else model.fitted.names
    found.calibrator, found.texts = Stages((), names), ()
    found.method = "trees" if model.method == "trees" else "none"
    if model.summary is not None:
        found.summary = replace(model.summary, trees=(), saturation=None)
    return found

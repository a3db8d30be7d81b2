"""Calibrators by segment in a run: which columns they need, how they are learned, measured and reported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import structlog
from pyspark.sql import DataFrame

from mcspark.config import Calibrator, Config
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.core.metrics.lead import Lead
from mcspark.core.metrics.metrics import Metrics, measure_change
from mcspark.core.metrics.noise import QUANTILES
from mcspark.core.segments import with_columns
from mcspark.ml.cells.cells import ScoredColumns
from mcspark.ml.cells.groups import GroupSet
from mcspark.ml.cells.segment_cells import Placing, SegmentCells
from mcspark.ml.cells.working import WORKING
from mcspark.ml.methods import estimator_of
from mcspark.ml.multicalibrator import Multicalibrator, MulticalibratorModel
from mcspark.ml.segment_fits import SegmentFit, Segments
from mcspark.ml.training.side_by_side import side_by_side
from mcspark.pipelines.judging.measuring import driver_cells, measuring_bins
from mcspark.pipelines.reading.rows import Inputs
from mcspark.pipelines.run import Run

log = structlog.get_logger(__name__)


class SegmentResult(NamedTuple):
    """What became of one segment, or, without a name, of the rows of all that are not listed.

    Parameters
    ----------
    name : str or None
        Its values in words.
    values : tuple of str
        Its values, by column.
    own : bool
        Whether it has a calibrator of its own.
    reason : str or None
        Why it has none, though it is large enough.
    rows : int
        Labelled rows.
    trees : int
        Of its calibrator's stages; none of one that changes nothing, or that is not its own.
    groups : int
        That it is judged by.
    before, after : Metrics
        On its held-out rows, on the grid that is led with.
    """

    name: str | None
    values: tuple[str, ...]
    own: bool
    reason: str | None
    rows: int
    trees: int
    groups: int
    before: Metrics
    after: Metrics


def trained_as(config: Config) -> Calibrator:
    """The settings of the calibrator; by segment and from columns the official LightGBM grows all trees.

    Those of segments are many and small, and SynapseML does not learn from columns.
    """
    calibrator = config.calibrator
    if config.segments is None and config.features is None:
        return calibrator
    return calibrator.model_copy(update={"engine": "lightgbm"})


def carried(config: Config, plan: GroupSet) -> tuple[tuple[Family, ...], tuple[str, ...], list[int]]:
    """Families that rows carry, the columns that these read, and the families of a segment's columns."""
    by = config.segments.by if config.segments else ()
    families, places = with_columns(plan.signed, by)
    return families, FittedGroups(families).columns, places


def fit_segments(run: Run, inputs: Inputs, plan: GroupSet, cells: Cells, groups: FittedGroups) -> Segments:
    """Learn a calibrator for each segment that is large enough."""
    config = run.config
    assert config.segments is not None
    estimator = estimator_of(trained_as(config))
    assert isinstance(estimator, Multicalibrator)
    by = SegmentFit(
        estimator, plan, config.evaluation.levels, config.calibrator.score_bins, config.segments.by,
        carried(config, plan)[2], config.segments.min_rows, float(config.calibrator.timeout_seconds),
        driver_cells(run).most,
    )  # fmt: skip
    names = replace(WORKING, weight=inputs.weight)
    with run.stage("segments", "learn a calibrator for each segment") as counts:
        found = by.fit(inputs.labelled, names, groups, cells.bins, inputs.scale)
        counts.update(own=len(found.models), pooled=found.pooled)
    for number, reason in found.reasons.items():
        name = found.census.table.names[number]
        log.warning("a segment shares the pooled calibrator", segment=name, reason=reason)
    return found


def cells_after(
    run: Run, inputs: Inputs, scored: DataFrame, calibrated: str, segments: Segments
) -> SegmentCells:
    """Cells of the calibrated score of the test rows by segment, still in the cluster."""
    table, bins = segments.census.table, measuring_bins(run)
    count = len(table) + 1
    placing = Placing(table, (bins,) * count, (inputs.scale,) * count)
    names = ScoredColumns(calibrated, WORKING.label, inputs.weight)
    plan = GroupSet.from_config(run.config.groups)
    return SegmentCells(scored, names, plan.families, carried(run.config, plan)[2], placing)


def measure_segments(
    run: Run, inputs: Inputs, segments: Segments, cells: SegmentCells, lead: Lead
) -> list[SegmentResult]:
    """Every segment before and after, on the grid that is led with; farthest beyond chance first."""
    evaluation = run.config.evaluation
    change = partial(
        measure_change, levels=(lead.grid,), draws=evaluation.draws, seed=evaluation.seed,
        min_rows=evaluation.min_group_rows, lead=lead,
    )  # fmt: skip
    chosen = [segments.groups[number] for number in range(len(segments.census.table) + 1)]
    after = cells.collect(chosen, most=driver_cells(run).most)
    pairs = ((number, (segments.test[number], own)) for number, _, own in after)
    others = inputs.n_labelled - sum(segments.census.rows)
    with side_by_side(len(chosen)) as workers:
        found = [_result(segments, others, number, *both) for number, both in workers.map(change, pairs)]
    listed = [result for result in found if result.name is not None or result.rows]
    return sorted(listed, key=lambda result: (result.name is None, -beyond_chance(result.after)))


def _result(segments: Segments, others: int, number: int, before: Metrics, after: Metrics) -> SegmentResult:
    census = segments.census
    known = number < len(census.table)
    model: MulticalibratorModel | None = segments.models.get(number)
    return SegmentResult(
        name=census.table.names[number] if known else None,
        values=tuple(map(str, census.table.values(number))) if known else (),
        own=model is not None,
        reason=segments.reasons.get(number),
        rows=census.rows[number] if known else others,
        trees=sum(stage.trees for stage in model.stages.stages) if model and model.stages else 0,
        groups=len(segments.groups[number].names),
        before=before,
        after=after,
    )


def beyond_chance(metrics: Metrics) -> float:
    """The error that is led with less its noise floor, in units of what chance adds to that (95 %)."""
    error, floor = metrics.leading(), metrics.floors[metrics.lead.levels]
    high = floor.quantiles.get(QUANTILES[-1])
    if error is None or floor.expected is None or high is None:
        return float("-inf")
    return (error - floor.expected) / max(high - floor.expected, 1e-12)


def segment_rows(results: Sequence[SegmentResult]) -> list[dict[str, Any]]:
    """The table of segments; see :data:`mcspark.pipelines.publishing.publishing.SEGMENTS_SCHEMA`."""
    return [_segment_row(number, result) for number, result in enumerate(results)]


def _segment_row(number: int, result: SegmentResult) -> dict[str, Any]:
    """What the table says of one segment."""
    before, after = result.before, result.after
    m = after.lead.levels
    high, beyond = after.floors[m].quantiles.get(QUANTILES[-1]), beyond_chance(after)
    return {
        "number": number,
        "segment": result.name,
        "values": list(result.values) if result.name is not None else None,
        "own": result.own,
        "reason": result.reason,
        "rows": result.rows,
        "test_rows": after.rows,
        "groups": result.groups,
        "trees": result.trees if result.own else None,
        "levels": m,
        "worst_group": after.ma_worst_group if m is None else after.by_level[m].worst_group,
        "error_before": before.leading(),
        "error_after": after.leading(),
        "noise_floor": after.leading("noise_floor"),
        "noise_floor_high": high,
        "p_value": after.leading("p_value"),
        "beyond_chance": beyond if math.isfinite(beyond) else None,
        "loss_before": before.loss,
        "loss_after": after.loss,
    }


def segments_summary(
    config: Config, segments: Segments, results: Sequence[SegmentResult], unmet: Sequence[str]
) -> dict[str, Any]:
    """Part of the summary line."""
    assert config.segments is not None
    own = [result for result in results if result.own]
    names = segments.census.table.names
    return {
        "by": list(config.segments.by),
        "min_rows": config.segments.min_rows,
        "own": len(segments.models),
        "pooled": segments.pooled,
        "rows": {
            "own": sum(result.rows for result in own),
            "pooled": sum(result.rows for result in results if not result.own),
        },
        "unchanged": sum(not result.trees for result in own),
        "reasons": {names[number]: reason for number, reason in segments.reasons.items()},
        "worst": _worst(results[0]) if results and results[0].name is not None else None,
        "unmet": list(unmet),
    }


def _worst(result: SegmentResult) -> dict[str, Any]:
    """The segment that is farthest beyond what chance explains."""
    row = _segment_row(0, result)
    names = ("segment", "own", "error_before", "error_after", "noise_floor", "p_value")
    return {name: row[name] for name in names}

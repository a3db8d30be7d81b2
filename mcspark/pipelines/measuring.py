"""Measuring a score the way the configuration asks for."""

from __future__ import annotations

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins, base_levels
from mcspark.core.metrics.metrics import Metrics, measure
from mcspark.pipelines.run import Run

_HALVINGS = 2
"""Of the base levels, in the cells of a score that is only measured: fine enough for smooth ECE."""


def measuring_bins(run: Run) -> ScoreBins:
    """Score bins for rows that are measured and not learned from."""
    base = base_levels(run.config.evaluation.levels)
    return ScoreBins(base, (_HALVINGS,) * base)


def measured(run: Run, cells: Cells, *, intervals: bool = False) -> Metrics:
    """All metrics of these cells, with intervals for the score that the run is about."""
    evaluation = run.config.evaluation
    return measure(
        cells, evaluation.levels, draws=evaluation.draws, seed=evaluation.seed,
        min_rows=evaluation.min_group_rows, intervals=intervals,
    )  # fmt: skip

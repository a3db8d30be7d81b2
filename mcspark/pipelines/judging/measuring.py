"""Measuring a score the way the configuration asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import structlog
from pyspark.sql import DataFrame

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.cells.levels import ScoreBins, base_levels
from mcspark.core.cells.summed import Summed
from mcspark.core.metrics.lead import Lead
from mcspark.core.metrics.metrics import Elsewhere, Metrics, measure
from mcspark.ml.cells.cells import MAX_DRIVER_CELLS, ScoredColumns, make_cells
from mcspark.ml.cells.groups import GroupSet
from mcspark.ml.cluster.cluster_cells import CellLimit, Judged, judged_cells
from mcspark.pipelines.reading.rows import Inputs
from mcspark.pipelines.run import Run
from mcspark.runtime.process.memory import memory_bytes

log = structlog.get_logger(__name__)

_HALVINGS = 2
"""Of the base levels, in the cells of a score that is only measured: fine enough for smooth ECE."""


_BYTES = 300
"""Of the driver's memory for a cell, with what measuring and learning make of it."""


def driver_cells(run: Run) -> CellLimit:
    """How many cells the driver holds, by the configuration or by its memory."""
    given = run.config.calibrator.driver_cells
    if given is not None:
        return CellLimit(given, "calibrator.driver_cells")
    memory = memory_bytes()
    most = max(1, min(memory // 2 // _BYTES, MAX_DRIVER_CELLS))
    return CellLimit(most, f"half of {memory / 2**30:.1f} GiB of memory, {_BYTES} bytes a cell")


def measuring_bins(run: Run) -> ScoreBins:
    """Score bins for rows that are measured and not learned from."""
    base = base_levels(run.config.evaluation.levels)
    return ScoreBins(base, (_HALVINGS,) * base)


@contextmanager
def cells_to_measure(
    run: Run, inputs: Inputs, frame: DataFrame, columns: ScoredColumns, wanted: GroupSet | FittedGroups
) -> Iterator[Judged]:
    """The cells of the test rows among some labelled rows of a run, to be measured within the block."""
    limit = driver_cells(run)
    rows = limit.rows(inputs.n_labelled)
    with ExitStack() as stack:
        with make_cells(
            frame, columns, wanted.families, measuring_bins(run), inputs.scale, rows=rows
        ) as table:
            found = stack.enter_context(judged_cells(table, wanted, Role.test, limit))
        yield found


def measured(
    run: Run, cells: Cells | Elsewhere, *, intervals: bool = False, lead: Lead | None = None
) -> Metrics:
    """All metrics of these cells, with intervals for the score that the run is about."""
    evaluation = run.config.evaluation
    return measure(
        cells, evaluation.levels, draws=evaluation.draws, seed=evaluation.seed,
        min_rows=evaluation.min_group_rows, intervals=intervals, lead=lead, thresholds=evaluation.fractions,
    )  # fmt: skip


def told_lead(run: Run, before: Summed, after: Summed | None = None) -> Lead:
    """What is led with; grids that are blind to the scores are named in the log."""
    lead = Lead.of(run.config.evaluation.levels, before, after)
    if lead.blind:
        metric, levels = lead.metric("mc_error")
        log.warning(
            "grids are blind to these scores: nearly all weight lies in one level",
            blind="; ".join(
                f"{f.words()} {'after' if f.after else 'before'} calibration" for f in lead.blind
            ),
            leads=f"{metric} of the score itself, smECE"
            if levels is None
            else f"{metric} at {levels} levels",
        )
    return lead

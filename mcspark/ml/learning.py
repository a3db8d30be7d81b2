"""From a labelled table to the cells that a calibrator learns from."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.cells.levels import MAX_DEPTH, ScoreBins, base_levels
from mcspark.ml.cells.cells import MAX_DRIVER_CELLS, ScoredColumns, choose_bins, make_cells
from mcspark.ml.cells.driver_cells import are_few
from mcspark.ml.cells.fixed_point import FixedPoint
from mcspark.ml.cells.groups import GroupSet, with_categories
from mcspark.ml.cells.working import WORKING, working_columns
from mcspark.ml.params import CalibratorParams
from mcspark.runtime.columns import column


def learning_cells(
    dataset: DataFrame, params: CalibratorParams, grids: tuple[int, ...] = ()
) -> tuple[Cells, FittedGroups]:
    """Cells of the labelled rows, test rows included, and the groups chosen on them.

    Parameters
    ----------
    dataset : DataFrame
    params : CalibratorParams
        Columns, groups, evaluation grids and score bins.
    grids : tuple of int
        Grids that the method needs beside those of the evaluation.

    Raises
    ------
    ContractError
        If a column is missing, a value is out of range, or no row has any weight.
    """
    wanted, columns = params.getGroups(), params._columns()
    frame = working_columns(dataset, columns, labelled=True)
    frame = with_categories(frame, wanted.signed)
    names = replace(WORKING, weight=WORKING.weight if columns.weight else None)
    scale, rows = FixedPoint.counted(frame, names.weight)
    levels = [*params.getOrDefault("levels"), *grids]
    return labelled_cells(frame, names, wanted, levels, params.getOrDefault("scoreBins"), scale, rows)


def labelled_cells(
    labelled: DataFrame, names: ScoredColumns, wanted: GroupSet, levels: list[int], score_bins: int,
    scale: FixedPoint, rows: int | None, most: int = MAX_DRIVER_CELLS,
) -> tuple[Cells, FittedGroups]:  # fmt: skip
    """Cells in bins as of :func:`learning_bins`, and the groups chosen on all these rows.

    Of few rows the driver takes the cells of the finest bins, in the only job; bins and groups are chosen
    there.
    """
    if are_few(rows, len(wanted.signed)):
        base = base_levels(levels)
        finest = ScoreBins(base, (MAX_DEPTH,) * base)
        with make_cells(labelled, names, wanted.signed, finest, scale, rows=rows) as table:
            return table.on_driver().in_chosen_bins(score_bins).collect_chosen(wanted)
    bins = learning_bins(labelled, names, levels, score_bins, scale)
    with make_cells(labelled, names, wanted.signed, bins, scale) as table:
        return table.collect_chosen(wanted, most)


def learning_bins(
    labelled: DataFrame, names: ScoredColumns, levels: list[int], score_bins: int, scale: FixedPoint
) -> ScoreBins:
    """The score bins to learn by, chosen by the rows that are not test.

    Parameters
    ----------
    labelled : DataFrame
    names : ScoredColumns
        Its columns, that of the split among them.
    levels : list of int
        Grids whose edges must be score bin edges.
    score_bins : int
        Wanted number of equally heavy bins beside those edges.
    scale : FixedPoint
    """
    learning = labelled.where(column(str(names.split)) != F.lit(Role.test.name))
    return choose_bins(learning, names, base_levels(levels), score_bins, scale)

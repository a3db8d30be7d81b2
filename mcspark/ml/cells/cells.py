"""Cells by one distributed group-by; the sums are exact integers, so no order of rows can change a digit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import structlog
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mcspark.core.cells.cells import SUMS, Cells, Role
from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.core.cells.levels import MAX_DEPTH, ScoreBins
from mcspark.engine.choice import engine_of
from mcspark.errors import ContractError
from mcspark.ml.cells.cell_sums import PLACE, SEGMENT, SPREAD, merged_cells, summed
from mcspark.ml.cells.driver_cells import DriverCells, are_few, cells_from, signed
from mcspark.ml.cells.fixed_point import FixedPoint
from mcspark.ml.cells.groups import GroupSet
from mcspark.ml.cells.levels import level_column, with_bin
from mcspark.ml.cells.signatures import category_name, weight_of
from mcspark.runtime.tasks.blocks import (
    by_bucket,
    counted,
    packed,
    spread_out,
    to_blocks,
    to_driver,
    unpacked,
)

log = structlog.get_logger(__name__)

MAX_DRIVER_CELLS = 12_000_000
"""Cells that the driver holds at the most, about 1 GB."""

_ROLES = tuple(role.name for role in Role)


@dataclass(frozen=True)
class ScoredColumns:
    """Names of the columns that cells are made of.

    Parameters
    ----------
    score, label : str
        Doubles in [0, 1].
    weight : str, optional
        Non-negative double; 1 if absent.
    split : str, optional
        ``fit``, ``early_stopping`` or ``test``; all ``test`` if absent.
    """

    score: str
    label: str
    weight: str | None = None
    split: str | None = None


def _integer_sum(value: Column, scale: float) -> Column:
    return F.sum(F.rint(value * F.lit(scale)).cast("long"))


def choose_bins(
    frame: DataFrame, columns: ScoredColumns, base: int, quantiles: int, scale: FixedPoint
) -> ScoreBins:
    """Score bins that are finer where the scores of these rows are dense.

    Parameters
    ----------
    frame : DataFrame
    columns : ScoredColumns
    base : int
        Least common multiple of the evaluation grids.
    quantiles : int
        Wanted number of equally heavy bins.
    scale : FixedPoint
        For weights that sum to no less than these rows'.
    """
    w = F.col(columns.weight) if columns.weight else F.lit(1.0)
    fine = base * 2**MAX_DEPTH
    table = (
        frame.groupBy(level_column(F.col(columns.score), fine).alias("level"))
        .agg(_integer_sum(w, scale.weight).alias("w"))
        .toPandas()
    )
    weight = np.zeros(fine)
    weight[table["level"].to_numpy()] = table["w"].to_numpy(np.float64)
    return ScoreBins.from_fine_weights(base, weight, quantiles)


class CellTable:
    """Cells of one pass over the rows, still in the cluster: keyed by category, so that groups can be chosen.

    Parameters
    ----------
    blocks : DataFrame
        Of :mod:`mcspark.runtime.tasks.blocks`, with the place (role and bin) of each cell, the categories of
        each family and their hash, and the sums as integers; kept on disk while the table is open (``with``).
    kinds : str
        Schema of the category columns.
    bins : ScoreBins
    scale : FixedPoint
    few : bool
        Whether the rows are so few that the driver takes all cells, and nothing is kept.
    """

    def __init__(
        self, blocks: DataFrame, kinds: str, bins: ScoreBins, scale: FixedPoint, *, few: bool = False
    ) -> None:
        self.bins, self.scale = bins, scale
        self._kinds = kinds
        self.few = few
        self.blocks = blocks if few else blocks.persist(StorageLevel.DISK_ONLY)

    def __enter__(self) -> CellTable:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.few:
            self.blocks.unpersist()

    @property
    def profiles(self) -> DataFrame:
        """The categories of each family and ``weight``, an exact integer; a row of each several times."""
        return unpacked(self.blocks, f"{self._kinds}, weight long".removeprefix(", "), _profiles)

    @property
    def merged(self) -> DataFrame:
        """Blocks in which every cell stands once, few and large."""
        spread = spread_out(self.blocks, _as_it_is, SPREAD)
        return packed(by_bucket(spread, merged_cells, kept=True))

    @property
    def kinds(self) -> str:
        """Schema of the category columns."""
        return self._kinds

    def on_driver(self) -> DriverCells:
        """All cells of few rows."""
        return DriverCells.of(self.blocks, self.bins, self.scale)

    def collect_chosen(self, wanted: GroupSet, most: int = MAX_DRIVER_CELLS) -> tuple[Cells, FittedGroups]:
        """Choose the groups on these rows, and :meth:`collect` the cells by them."""
        if self.few:
            return self.on_driver().collect_chosen(wanted)
        groups = wanted.fit(self.profiles, "weight")
        return self.collect(groups, most), groups

    def collect(self, groups: FittedGroups, most: int = MAX_DRIVER_CELLS) -> Cells:
        """Sum the categories up to signatures and bring the cells to the driver, in an order of their own.

        Where they would be more than ``most``, score bins are merged in the cluster until they are not.

        Raises
        ------
        ContractError
            If even the base levels make more cells.
        """
        if self.few:
            return self.on_driver().collect(groups)
        bins = self.bins
        while True:
            table = self.signed(groups, bins).persist(StorageLevel.DISK_ONLY)
            try:
                count, size = counted(table)
                if count <= most:
                    return cells_from(to_driver(table, size), groups, bins, self.scale)
            finally:
                table.unpersist()
            if not any(bins.depth):
                raise ContractError(
                    f"the labelled rows fall into {count} cells, more than the {most} that the driver takes; "
                    f"{_fewer(groups)}{or_more_cells(most)}"
                )
            bins = bins.coarser()
            log.warning("too many cells for the driver: score bins are merged", cells=count, bins=bins.n_bins)

    def signed(self, groups: FittedGroups, bins: ScoreBins) -> DataFrame:
        """Blocks with the words of the signature in place of the categories; every cell stands once.

        All cells of a signature are in one block. Whoever takes them keeps them while they are needed.
        """
        sign = partial(signed, groups=groups, bins=self.bins, coarser=bins)
        return by_bucket(spread_out(self.blocks, sign, SPREAD), merged_cells, kept=True)


def or_more_cells(most: int) -> str:
    """The other way out of a refusal of more cells than ``most``, where there is one."""
    return ", or raise calibrator.driver_cells" if most < MAX_DRIVER_CELLS else ""


def _fewer(groups: FittedGroups) -> str:
    if groups.features:
        return (
            "with features, a row of rare categories is a cell of its own: give columns of features bins or "
            "divide_by, leave some out, or leave out the section features"
        )
    return "use fewer groups: raise groups.min_share, or leave a column out"


def make_cells(
    frame: DataFrame,
    columns: ScoredColumns,
    families: tuple[Family, ...],
    bins: ScoreBins,
    scale: FixedPoint,
    roles: Sequence[str] = _ROLES,
    rows: int | None = None,
) -> CellTable:
    """Make the cells of labelled rows: one pass, one group-by.

    Parameters
    ----------
    frame : DataFrame
        Labelled rows that carry the category columns of :func:`mcspark.ml.cells.groups.with_categories`.
    columns : ScoredColumns
    families : tuple of Family
    bins : ScoreBins
    scale : FixedPoint
        For weights that sum to no less than these rows'.
    roles : sequence of str
        Values of the split column; a cell's role is the place of its rows' among them.
    rows : int, optional
        No fewer than there are, where that is known: of few rows the driver takes all cells in one job.
    """
    binned = with_bin(frame, columns.score, bins, PLACE)
    place = role_of(columns, roles) * bins.n_bins + F.col(PLACE)
    summing = rows_to_sum(binned, columns, families, place.alias(PLACE))
    blocks = to_blocks(summing, partial(summed, weight=scale.weight, weight_sq=scale.weight_sq))
    few = are_few(rows, len(families))
    return CellTable(blocks, category_kinds(frame, families), bins, scale, few=few)


def role_of(columns: ScoredColumns, roles: Sequence[str] = _ROLES) -> Column:
    """The place of each row's role among these values of the split column; the last one's without a split."""
    names = F.array(*[F.lit(role) for role in roles])
    split = F.col(columns.split) if columns.split else F.lit(roles[-1])
    return (F.call_function("array_position", names, split) - 1).cast("long")


def rows_to_sum(
    frame: DataFrame, columns: ScoredColumns, families: tuple[Family, ...], *keys: Column
) -> DataFrame:
    """What :func:`summed` needs of labelled rows: categories, keys, a hash of the former, f, y and w."""
    categories = [category_name(i) for i in range(len(families))]
    rows = frame.select(
        *categories,
        *keys,
        # A hash skips what is null: say where that is.
        F.xxhash64(F.lit(0), *categories, *[F.col(name).isNull() for name in categories]).alias(SPREAD),
        F.col(columns.score).alias("f"),
        F.col(columns.label).alias("y"),
        *([F.col(columns.weight).alias("w")] if columns.weight else []),
    )
    # Spark leaves the partitions of a table that is kept as they are: after a join 200, by default.
    return rows.coalesce(4 * engine_of(frame.sparkSession).cores())


def category_kinds(frame: DataFrame, families: tuple[Family, ...]) -> str:
    """Schema of the category columns."""
    names = map(category_name, range(len(families)))
    return ", ".join(f"{name} {frame.schema[name].dataType.simpleString()}" for name in names)


def _as_it_is(cells: pa.Table) -> pa.Table:
    return cells


def _profiles(cells: pa.Table) -> pa.Table:
    """Weight of every combination of categories."""
    _, one, other = np.unique(cells[SPREAD].to_numpy(), return_index=True, return_inverse=True)
    names = [name for name in cells.column_names if name not in (*SUMS, SPREAD, PLACE, SEGMENT)]
    weight = weight_of(cells)
    total = np.zeros(len(one), dtype=np.int64)
    np.add.at(total, other.reshape(-1), weight)
    columns = {n: cells[n].combine_chunks().dictionary_decode().take(pa.array(one)) for n in names}
    return pa.table({**columns, "weight": total})

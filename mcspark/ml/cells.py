"""Cells by one distributed group-by; the sums are exact integers, so no order of rows can change a digit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import structlog
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mcspark.core.cells.cells import LEAST_TOTAL, SUMS, Cells, Role
from mcspark.core.cells.groups import Family, FittedGroups, distinct_rows
from mcspark.core.cells.levels import MAX_DEPTH, IntArray, ScoreBins
from mcspark.engine.choice import engine_of
from mcspark.errors import ContractError
from mcspark.ml.cell_sums import PLACE, SEGMENT, SPREAD, merged_cells, spread_of, summed
from mcspark.ml.groups import GroupSet
from mcspark.ml.levels import level_column, with_bin
from mcspark.ml.signatures import category_name, signature_of, word_names
from mcspark.runtime.blocks import (
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

_SUM_BITS = 60

_LEAST_SHARE = 1e-6
"""Share of the labelled weight below which the sums of one part of the split keep too few digits."""

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


@dataclass(frozen=True)
class FixedPoint:
    """Powers of two by which weights and squared weights are scaled before they are summed as integers.

    A sum of doubles depends on the order of the rows, which no cluster repeats. Integers do not: each term is
    rounded once, to about 2^-60 of the total, and the sum is exact.
    """

    weight: float
    weight_sq: float

    @classmethod
    def for_totals(cls, weight: float, weight_sq: float) -> FixedPoint:
        """Scales that keep sums of this size within a signed 64-bit integer.

        Raises
        ------
        ContractError
            If there is no weight, or the weights are too large or too small to be squared.
        """
        if not weight:
            raise ContractError(
                "no labelled row has any weight: there is nothing to measure or to learn from"
            )
        if not all(LEAST_TOTAL < total < 1 / LEAST_TOTAL for total in (weight, weight_sq)):
            raise ContractError(
                f"the weights sum to {weight:g} and their squares to {weight_sq:g}, which is out of range; "
                "divide the weights by their mean"
            )
        return cls(*(2.0 ** (_SUM_BITS - math.frexp(t * (1 + 1e-9))[1]) for t in (weight, weight_sq)))

    @classmethod
    def of(cls, frame: DataFrame, weight: str | None) -> FixedPoint:
        """Scales for the rows of a table, and for any part of it; see :meth:`for_totals`."""
        w = F.col(weight) if weight else F.lit(1.0)
        row = frame.agg(F.sum(w), F.sum(w * w)).first()
        assert row is not None  # an aggregate without keys has one row
        return cls.for_totals(row[0] or 0.0, row[1] or 0.0)


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
        Of :mod:`mcspark.runtime.blocks`, with the place (role and bin) of each cell, the categories of each
        family and their hash, and the sums as integers; kept on disk while the table is open (``with``).
    kinds : str
        Schema of the category columns.
    bins : ScoreBins
    scale : FixedPoint
    """

    def __init__(self, blocks: DataFrame, kinds: str, bins: ScoreBins, scale: FixedPoint) -> None:
        self.bins, self.scale = bins, scale
        self._kinds = kinds
        self.blocks = blocks.persist(StorageLevel.DISK_ONLY)

    def __enter__(self) -> CellTable:
        return self

    def __exit__(self, *_: object) -> None:
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

    def collect_chosen(self, wanted: GroupSet) -> tuple[Cells, FittedGroups]:
        """Choose the groups on these rows, and :meth:`collect` the cells by them."""
        groups = wanted.fit(self.profiles, "weight")
        return self.collect(groups), groups

    def collect(self, groups: FittedGroups, most: int = MAX_DRIVER_CELLS) -> Cells:
        """Sum the categories up to signatures and bring the cells to the driver, in an order of their own.

        Where they would be more than ``most``, score bins are merged in the cluster until they are not.

        Raises
        ------
        ContractError
            If even the base levels make more cells.
        """
        bins = self.bins
        while True:
            sign = partial(_signed, groups=groups, bins=self.bins, coarser=bins)
            signed = spread_out(self.blocks, sign, SPREAD)
            table = by_bucket(signed, merged_cells, kept=True).persist(StorageLevel.DISK_ONLY)
            try:
                count, size = counted(table)
                if count <= most:
                    return self._to_cells(to_driver(table, size), groups, bins)
            finally:
                table.unpersist()
            if not any(bins.depth):
                raise ContractError(
                    f"the labelled rows fall into {count} cells, more than the {most} that the driver takes; "
                    f"{_fewer(groups)}"
                )
            bins = bins.coarser()
            log.warning("too many cells for the driver: score bins are merged", cells=count, bins=bins.n_bins)

    def _to_cells(self, table: pa.Table | None, groups: FittedGroups, bins: ScoreBins) -> Cells:
        data = {} if table is None else {n: table[n].to_numpy() for n in table.column_names}
        none = np.zeros(0, dtype=np.int64)
        words = np.stack([data.get(name, none) for name in word_names(groups)], axis=1)
        return cells_of(data, words, groups, bins, self.scale)


def _fewer(groups: FittedGroups) -> str:
    if groups.features:
        return (
            "with features, a row of rare categories is a cell of its own: give columns of features bins or "
            "divide_by, leave some out, or leave out the section features"
        )
    return "use fewer groups: raise groups.min_share, or leave a column out"


def cells_of(
    data: Mapping[str, IntArray], words: IntArray, groups: FittedGroups, bins: ScoreBins, scale: FixedPoint
) -> Cells:
    """Cells from columns of integer sums, in an order of their own.

    Parameters
    ----------
    data : mapping of str to ndarray
        The place and the sums of each cell; nothing where there is none.
    words : ndarray of int, shape (C, n_words)
        Signature of each.
    groups : FittedGroups
    bins : ScoreBins
    scale : FixedPoint

    Raises
    ------
    ContractError
        If one part of the split has next to no weight beside the others.
    """
    none = np.zeros(0, dtype=np.int64)
    signatures, signature = distinct_rows(words)
    role, place = np.divmod(data.get(PLACE, none), bins.n_bins)
    _refuse_light_part(role, data.get("weight", none))
    order = np.lexsort((place, signature, role))
    units = dict.fromkeys(SUMS, scale.weight) | {"n": 1.0, "weight_sq": scale.weight_sq}
    # Where nothing has a weight, every row weighs 1.
    sums = {name: (name, units[name]) if name in data else ("n", 1.0) for name in SUMS}
    return Cells(
        bins,
        groups.names,
        groups.membership(signatures),
        place[order],
        signature[order],
        role[order],
        **{k: data.get(name, none)[order].astype(np.float64) / unit for k, (name, unit) in sums.items()},
        features=groups.features_of(signatures),
    )


def _refuse_light_part(role: IntArray, weight: IntArray) -> None:
    """Refuse a part of the split that weighs so little beside the others that one scale cannot serve both."""
    if not len(weight):
        return
    held = np.bincount(role, weights=weight)
    least = held[held > 0].min(initial=np.inf) / max(held.sum(), 1.0)
    if least < _LEAST_SHARE:
        raise ContractError(
            f"one part of the split (fit, early_stopping, test) holds {least:.1e} of the weight of all "
            f"labelled rows, too little to be measured beside them (at least {_LEAST_SHARE:g}); "
            "correct or cap the weights, or split the rows otherwise (split.seed)"
        )


def make_cells(
    frame: DataFrame,
    columns: ScoredColumns,
    families: tuple[Family, ...],
    bins: ScoreBins,
    scale: FixedPoint,
    roles: Sequence[str] = _ROLES,
) -> CellTable:
    """Make the cells of labelled rows: one pass, one group-by.

    Parameters
    ----------
    frame : DataFrame
        Labelled rows that carry the category columns of :func:`mcspark.ml.groups.with_categories`.
    columns : ScoredColumns
    families : tuple of Family
    bins : ScoreBins
    scale : FixedPoint
        For weights that sum to no less than these rows'.
    roles : sequence of str
        Values of the split column; a cell's role is the place of its rows' among them.
    """
    binned = with_bin(frame, columns.score, bins, PLACE)
    place = role_of(columns, roles) * bins.n_bins + F.col(PLACE)
    rows = rows_to_sum(binned, columns, families, place.alias(PLACE))
    blocks = to_blocks(rows, partial(summed, weight=scale.weight, weight_sq=scale.weight_sq))
    return CellTable(blocks, category_kinds(frame, families), bins, scale)


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
    weight = cells["weight" if "weight" in cells.column_names else "n"].to_numpy()
    total = np.zeros(len(one), dtype=np.int64)
    np.add.at(total, other.reshape(-1), weight)
    columns = {n: cells[n].combine_chunks().dictionary_decode().take(pa.array(one)) for n in names}
    return pa.table({**columns, "weight": total})


def _signed(cells: pa.Table, groups: FittedGroups, bins: ScoreBins, coarser: ScoreBins) -> pa.Table:
    """Cells with their categories turned to a signature, and their bins to coarser ones."""
    words = signature_of(cells, groups)
    role, place = np.divmod(cells[PLACE].to_numpy(), bins.n_bins)
    if coarser != bins:
        place = coarser.assign(bins.edges()[:-1])[place]
    columns = dict(zip(word_names(groups), words.T, strict=True))
    columns |= {PLACE: role * coarser.n_bins + place, SPREAD: spread_of(words)}
    return merged_cells(pa.table({**columns, **{n: cells[n] for n in cells.column_names if n in SUMS}}))

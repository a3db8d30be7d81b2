"""Cells by one distributed group-by; the sums are exact integers, so no order of rows can change a digit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import structlog
from numpy.typing import NDArray
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mcspark.core.cells import SUMS, Cells, Role
from mcspark.core.groups import Family, FittedGroups, distinct_rows
from mcspark.core.levels import MAX_DEPTH, ScoreBins
from mcspark.errors import ContractError
from mcspark.ml.groups import category_name, with_signature, word_names
from mcspark.ml.levels import int_array, level_column, with_bin

log = structlog.get_logger(__name__)

MAX_DRIVER_CELLS = 12_000_000
"""Cells that the driver holds at the most, about 1 GB."""

_SUM_BITS = 60

_ROLES = tuple(role.name for role in Role)
_LEAST_TOTAL = 1e-250


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
        if not all(_LEAST_TOTAL < total < 1 / _LEAST_TOTAL for total in (weight, weight_sq)):
            raise ContractError(
                f"the weights sum to {weight:g} and their squares to {weight_sq:g}, which is out of range; "
                "divide the weights by their mean"
            )
        return cls(*(2.0 ** (_SUM_BITS - math.ceil(math.log2(t * (1 + 1e-9)))) for t in (weight, weight_sq)))

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


@dataclass(frozen=True)
class CellTable:
    """Cells of one pass over the rows, still in Spark: keyed by category, so that groups can be chosen.

    Parameters
    ----------
    frame : DataFrame
        Columns ``__bin``, ``__role``, the categories of each family, and the sums as integers; kept on disk
        until :meth:`release`.
    bins : ScoreBins
    scale : FixedPoint
    """

    frame: DataFrame
    bins: ScoreBins
    scale: FixedPoint

    def release(self) -> None:
        """Free the disk."""
        self.frame.unpersist()

    def collect(self, groups: FittedGroups, most: int = MAX_DRIVER_CELLS) -> Cells:
        """Sum the categories up to signatures and bring the cells to the driver, in an order of their own.

        Where they would be more than ``most``, score bins are merged in the cluster until they are not.

        Raises
        ------
        ContractError
            If even the base levels make more cells.
        """
        count = self.frame.count()
        if count <= most:
            return self._to_driver(_collect(self._signed(groups, self.bins), count), groups, self.bins)
        bins = self.bins
        while True:
            signed = self._signed(groups, bins)
            keys = [name for name in signed.columns if name not in SUMS]
            table = _kept(signed.groupBy(*keys).agg(*[F.sum(n).alias(n) for n in SUMS]))
            try:
                count = table.count()
                if count <= most:
                    return self._to_driver(_collect(table, count), groups, bins)
            finally:
                table.unpersist()
            if not any(bins.depth):
                raise ContractError(
                    f"the labelled rows fall into {count} cells, more than the {most} that the driver takes; "
                    "use fewer groups: raise groups.min_share, or leave a column out"
                )
            bins = bins.coarser()
            log.warning("too many cells for the driver: score bins are merged", cells=count, bins=bins.n_bins)

    def _signed(self, groups: FittedGroups, bins: ScoreBins) -> DataFrame:
        """Role, signature, bin and sums; not yet summed up, so that a cell may be on several rows."""
        place = F.col("__bin")
        if bins != self.bins:
            place = F.get(int_array(bins.assign(self.bins.edges()[:-1])), place)
        frame = with_signature(self.frame, groups)
        return frame.select("__role", *word_names(groups), place.alias("__bin"), *SUMS)

    def _to_driver(self, data: pd.DataFrame, groups: FittedGroups, bins: ScoreBins) -> Cells:
        keys = ["__role", *word_names(groups), "__bin"]
        order = np.lexsort(tuple(data[key] for key in reversed(keys)))
        sorted_keys = data[keys].to_numpy(np.int64)[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (sorted_keys[1:] != sorted_keys[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        role, words, place = np.split(sorted_keys[first], [1, len(keys) - 1], axis=1)
        signatures, signature = distinct_rows(words)
        scales = dict.fromkeys(SUMS, self.scale.weight) | {"n": 1.0, "weight_sq": self.scale.weight_sq}
        sums = {name: _sums_from(first, data[name].to_numpy(np.int64)[order]) for name in SUMS}
        return Cells(
            bins,
            groups.names,
            groups.membership(signatures),
            place[:, 0].copy(),
            signature,
            role[:, 0].copy(),
            **{name: sums[name].astype(np.float64) / scales[name] for name in SUMS},
        )


def _sums_from(first: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Exact sums of the values from each of these places up to the next."""
    return np.add.reduceat(values, first) if len(first) else np.zeros(0, dtype=np.int64)


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
    f, y = F.col(columns.score), F.col(columns.label)
    names = F.array(*[F.lit(role) for role in roles])
    split = F.col(columns.split) if columns.split else F.lit(roles[-1])
    role = F.call_function("array_position", names, split).cast("int") - 1
    w = F.col(columns.weight) if columns.weight else F.lit(1.0)
    values = {
        "score": w * f, "label": w * y,
        "score_sq": w * f * f, "label_sq": w * y * y, "score_label": w * f * y,
    }  # fmt: skip
    sums = {name: _integer_sum(value, scale.weight) for name, value in values.items()}
    if columns.weight:
        sums |= {"weight": _integer_sum(w, scale.weight), "weight_sq": _integer_sum(w * w, scale.weight_sq)}
    table = (
        with_bin(frame, columns.score, bins, "__bin")
        .groupBy("__bin", role.alias("__role"), *[category_name(i) for i in range(len(families))])
        .agg(F.count(F.lit(1)).alias("n"), *[total.alias(name) for name, total in sums.items()])
    )
    if not columns.weight:  # rows of weight 1 are counted, not summed
        counted = {"weight": scale.weight, "weight_sq": scale.weight_sq}
        table = table.withColumns(
            {name: F.rint(F.col("n") * F.lit(s)).cast("long") for name, s in counted.items()}
        )
    return CellTable(_kept(table), bins, scale)


def _kept(table: DataFrame) -> DataFrame:
    """The table, to be kept on disk in as many parts as there are cores, since it is small.

    Spark does not merge the shuffle partitions of a table that is kept, 200 by default.
    """
    cores = table.sparkSession.sparkContext.defaultParallelism
    return table.coalesce(max(cores, 1)).persist(StorageLevel.DISK_ONLY)


def _collect(table: DataFrame, count: int) -> pd.DataFrame:
    """Collect a table in pieces well below the driver's limit for one result."""
    limit = table.sparkSession.sparkContext.getConf().get("spark.driver.maxResultSize", "1g")
    allowed = _bytes(limit) / 4
    pieces = math.ceil(count * 8 * len(table.columns) / allowed) if allowed else 1
    if pieces <= 1:
        return table.toPandas()
    piece = F.pmod(F.xxhash64(*table.columns), F.lit(pieces))
    return pd.concat([table.where(piece == i).toPandas() for i in range(pieces)], ignore_index=True)


def _bytes(size: str) -> float:
    """Bytes of a Spark size such as ``64m`` or ``1g``; a bare number is bytes."""
    units = {"k": 10, "m": 20, "g": 30, "t": 40}
    text = size.strip().lower().removesuffix("b")
    return float(text[:-1]) * 2.0 ** units[text[-1]] if text[-1:] in units else float(text)

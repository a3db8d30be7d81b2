"""Cells of all segments in one pass: of each, the very sums that a run on its rows alone would make.

A segment has score bins, a unit of the sums and groups of its own. The rows of no segment that is listed
come last, as one more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from mcspark.core.cells.cells import SUMS, Cells, Role
from mcspark.core.cells.groups import Category, Family, FittedGroups, distinct_rows
from mcspark.core.cells.levels import MAX_DEPTH, FloatArray, IntArray, ScoreBins, level_index
from mcspark.core.segments import SegmentTable, union
from mcspark.errors import ContractError
from mcspark.ml.cells.cell_sums import PLACE, SEGMENT, SPREAD, merged_cells, spread_of, summed
from mcspark.ml.cells.cells import (
    MAX_DRIVER_CELLS,
    CellTable,
    ScoredColumns,
    category_kinds,
    or_more_cells,
    role_of,
    rows_to_sum,
)
from mcspark.ml.cells.census import segment_key
from mcspark.ml.cells.driver_cells import cells_of
from mcspark.ml.cells.fixed_point import FixedPoint
from mcspark.ml.cells.signatures import category_name, signature_of, weight_of, word_names
from mcspark.runtime.columns import column
from mcspark.runtime.tasks.blocks import (
    by_bucket,
    counted,
    each_block,
    spread_out,
    to_blocks,
    to_driver,
    unpacked,
)

_LEVEL, _DEPTH = "level", "depth"


def segment_bins(
    labelled: DataFrame,
    names: ScoredColumns,
    table: SegmentTable,
    places: Sequence[int],
    base: int,
    quantiles: int,
    scales: Sequence[FixedPoint],
) -> tuple[ScoreBins, ...]:
    """The score bins of the first segments of a table, each chosen by its rows that are not test.

    Parameters
    ----------
    labelled : DataFrame
    names : ScoredColumns
    table : SegmentTable
    places : sequence of int
        Families of its columns.
    base : int
        Least common multiple of the evaluation grids.
    quantiles : int
        Wanted number of equally heavy bins.
    scales : sequence of FixedPoint
        One for each of these segments.
    """
    learning = labelled.where(column(str(names.split)) != F.lit(Role.test.name))
    rows = learning.select(
        segment_key(table, places).alias(SEGMENT), F.col(names.score).alias("f"),
        *([F.col(names.weight).alias("w")] if names.weight else []),
    )  # fmt: skip
    units = np.array([scale.weight for scale in scales])
    weights = partial(_fine_weights, table=table, fine=base << MAX_DEPTH, units=units)
    depths = partial(_depths, base=base, quantiles=quantiles)
    found = to_driver(by_bucket(to_blocks(rows, weights, SEGMENT), depths))
    bins = [ScoreBins.uniform(base)] * len(scales)  # of a segment whose rows are all test
    if found is None:
        return tuple(bins)
    for number, depth in zip(found[SEGMENT].to_pylist(), found[_DEPTH].to_pylist(), strict=True):
        bins[number] = ScoreBins(base, tuple(depth))
    return tuple(bins)


def _fine_weights(rows: pa.Table, table: SegmentTable, fine: int, units: FloatArray) -> pa.Table:
    """Weight by segment and level of the finest grid, in the unit of the segment."""
    number = table.numbers(rows[SEGMENT].to_numpy())
    kept = (number >= 0) & (number < len(units))
    number, score = number[kept], rows["f"].to_numpy()[kept]
    w = rows["w"].to_numpy()[kept] if "w" in rows.column_names else np.ones(len(score))
    place, total = _totals(
        number * fine + level_index(score, fine), np.rint(w * units[number]).astype(np.int64)
    )
    number, level = np.divmod(place, fine)
    return pa.table({SEGMENT: number, _LEVEL: level, "w": total})


def _depths(weights: pa.Table, base: int, quantiles: int) -> pa.Table:
    """Halvings of each base level, of each segment."""
    number, level, w = (weights[name].to_numpy() for name in (SEGMENT, _LEVEL, "w"))
    segments, depths = np.unique(number), []
    for segment in segments:
        rows, total = number == segment, np.zeros(base << MAX_DEPTH, dtype=np.int64)
        np.add.at(total, level[rows], w[rows])
        depths.append(bytes(ScoreBins.from_fine_weights(base, total.astype(np.float64), quantiles).depth))
    return pa.table({SEGMENT: segments, _DEPTH: pa.array(depths, pa.binary())})


@dataclass(frozen=True)
class Placing:
    """Where a row of each segment falls, laid out for many rows of many segments.

    Parameters
    ----------
    table : SegmentTable
    bins : tuple of ScoreBins
        Of one base: of each segment, and of the rows of none.
    scales : tuple of FixedPoint
    """

    table: SegmentTable
    bins: tuple[ScoreBins, ...]
    scales: tuple[FixedPoint, ...]

    def cells(self, rows: pa.Table) -> pa.Table:
        """Cells by segment from rows with key, role and hash; each term is rounded in its segment's unit."""
        number = self.table.numbers(rows[SEGMENT].to_numpy())
        number = np.where(number < 0, len(self.table), number)
        units = (
            np.array([getattr(s, name) for s in self.scales])[number] for name in ("weight", "weight_sq")
        )
        changed = {
            SEGMENT: number,
            PLACE: self._places(number, rows["f"].to_numpy(), rows[PLACE].to_numpy()),
            SPREAD: _spread(rows[SPREAD].to_numpy(), number),
        }
        columns = {name: changed.get(name, rows[name]) for name in rows.column_names}
        return summed(pa.table(columns), *units)

    def _places(self, number: IntArray, score: FloatArray, role: IntArray) -> IntArray:
        """:meth:`ScoreBins.assign` of each row's own bins, and its role."""
        base = self.bins[0].base
        distinct = list(dict.fromkeys(self.bins))
        which = np.array([distinct.index(bins) for bins in self.bins])[number]
        level = level_index(score, base)
        parts = 2 ** np.array([bins.depth for bins in distinct], dtype=np.int64)[which, level]
        within = level_index(score, base * parts) - level * parts
        starts = np.stack([bins.starts for bins in distinct])
        size = np.array([bins.n_bins for bins in distinct])
        return np.asarray(role * size[which] + starts[which, level] + within, dtype=np.int64)


def _spread(spread: IntArray, number: IntArray) -> IntArray:
    return spread_of(np.stack([spread, number], axis=1))


class SegmentCells:
    """Cells by segment, still in the cluster; kept on disk while it is open (``with``).

    Parameters
    ----------
    rows : DataFrame
        Labelled rows with their category columns.
    names : ScoredColumns
    families : tuple of Family
        Of the groups.
    places : sequence of int
        Families of the columns of a segment.
    placing : Placing
    """

    def __init__(
        self,
        rows: DataFrame,
        names: ScoredColumns,
        families: tuple[Family, ...],
        places: Sequence[int],
        placing: Placing,
    ) -> None:
        self._placing = placing
        segment, role = segment_key(placing.table, places).alias(SEGMENT), role_of(names).alias(PLACE)
        blocks = to_blocks(rows_to_sum(rows, names, families, segment, role), placing.cells)
        self._integral = [
            isinstance(rows.schema[category_name(i)].dataType, LongType) for i in range(len(families))
        ]
        self.every = CellTable(blocks, category_kinds(rows, families), placing.bins[-1], placing.scales[-1])
        """The cells of all rows, whatever their segment, where all have the same bins and unit."""

    def __enter__(self) -> SegmentCells:
        self.every.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.every.__exit__(*error)

    def shares(self, segments: int) -> list[list[dict[Category, float]]]:
        """Share of each category of each family in the weight of each of the first segments."""
        schema = "segment long, family int, category string, weight long"
        reduce = partial(_profiles, families=len(self._integral), segments=segments)
        sums = unpacked(self.every.blocks, schema, reduce).groupBy("segment", "family", "category")
        rows = sums.agg(F.sum("weight").alias("weight")).collect()
        totals = np.zeros(segments, dtype=object)
        for row in rows:
            totals[row["segment"]] += row["weight"] if row["family"] == 0 else 0
        found: list[list[dict[Category, float]]] = [[{} for _ in self._integral] for _ in range(segments)]
        for row in rows:
            if row["category"] is not None:
                category = int(row["category"]) if self._integral[row["family"]] else row["category"]
                share = row["weight"] / totals[row["segment"]]
                found[row["segment"]][row["family"]][category] = share
        return found

    def collect(
        self,
        groups: Sequence[FittedGroups],
        paired: Callable[[int, IntArray, IntArray], FittedGroups] | None = None,
        most: int = MAX_DRIVER_CELLS,
    ) -> Iterator[tuple[int, FittedGroups, Cells]]:
        """The cells of each segment and of the rows of none, each as one table alone would bring them.

        Parameters
        ----------
        groups : sequence of FittedGroups
            Of each segment, and of the rows of none.
        paired : callable, optional
            The groups with their intersections, from the number of a segment, its distinct signatures and
            their weight.
        most : int
            Cells that the driver holds at a time.
        """
        layout = _Layout(groups)
        signed = spread_out(self.every.blocks, layout.signed, SPREAD)
        table = by_bucket(signed, merged_cells, kept=True).persist(StorageLevel.DISK_ONLY)
        try:
            count, size = counted(table)
            for batch in self._batches(table, count, most):
                some = each_block(table, partial(_of_segments, segments=batch)) if count > most else table
                found = to_driver(some, size)
                yield from self._split(found, batch, layout, groups, paired)
        finally:
            table.unpersist()

    def _batches(self, table: DataFrame, count: int, most: int) -> list[list[int]]:
        """The segments in batches whose cells the driver can hold."""
        every = list(range(len(self._placing.bins)))
        if count <= most:
            return [every]
        sizes = unpacked(table, "segment long, n long", _sizes).groupBy("segment").agg(F.sum("n").alias("n"))
        size = {row["segment"]: row["n"] for row in sizes.collect()}
        if largest := [n for n in size.values() if n > most]:
            raise ContractError(
                f"the labelled rows of a segment fall into {largest[0]} cells, more than the {most} that the "
                "driver takes; use fewer groups: raise groups.min_share, or leave a column out"
                f"{or_more_cells(most)}"
            )
        batches: list[list[int]] = [[]]
        for number in every:
            if batches[-1] and sum(size.get(n, 0) for n in (*batches[-1], number)) > most:
                batches.append([])
            batches[-1].append(number)
        return batches

    def _split(
        self,
        table: pa.Table | None,
        batch: Sequence[int],
        layout: _Layout,
        groups: Sequence[FittedGroups],
        paired: Callable[[int, IntArray, IntArray], FittedGroups] | None,
    ) -> Iterator[tuple[int, FittedGroups, Cells]]:
        data = {} if table is None else {n: table[n].to_numpy() for n in table.column_names}
        segment = data.get(SEGMENT, np.zeros(0, dtype=np.int64))
        order = np.argsort(segment, kind="stable")
        edges = (
            np.searchsorted(segment[order], batch, "left"),
            np.searchsorted(segment[order], batch, "right"),
        )
        for number, start, end in zip(batch, *edges, strict=True):
            own = {name: value[order[start:end]] for name, value in data.items()}
            words = layout.own_words(number, own)
            found = groups[number]
            if paired is not None:
                signatures, place = distinct_rows(words)
                weight = np.zeros(len(signatures), dtype=np.int64)
                np.add.at(weight, place, own["weight" if "weight" in own else "n"] if own else 0)
                found = paired(number, signatures, weight)
            placing = self._placing
            yield number, found, cells_of(own, words, found, placing.bins[number], placing.scales[number])


class _Layout:
    """Signatures in one layout for all segments, in which a row has only groups of its own segment."""

    def __init__(self, groups: Sequence[FittedGroups]) -> None:
        none = SegmentTable.of_values((), ())
        self._groups = [FittedGroups(found.families) for found in groups]
        self._every, _ = union(none, self._groups)
        self._own_codes = []
        for i, family in enumerate(self._every.families):
            known = {category: code for code, category in enumerate(family.categories, start=1)}
            codes = np.zeros((len(groups), len(known) + 1), dtype=np.int64)
            for number, found in enumerate(self._groups):
                own = found.families[i].categories
                codes[number, [known[category] for category in own]] = np.arange(1, len(own) + 1)
            self._own_codes.append(codes)

    def signed(self, cells: pa.Table) -> pa.Table:
        """Cells with their categories turned to a signature."""
        segment = cells[SEGMENT].to_numpy()
        codes = self._every.codes(signature_of(cells, self._every))
        for i, own in enumerate(self._own_codes):
            codes[:, i] *= own[segment, codes[:, i]] > 0
        words = self._every.words(codes)
        columns: dict[str, Any] = dict(zip(word_names(self._every), words.T, strict=True))
        spread = spread_of(np.concatenate([words, segment[:, None]], axis=1))
        columns |= {SEGMENT: segment, PLACE: cells[PLACE], SPREAD: spread}
        return merged_cells(pa.table({**columns, **{n: cells[n] for n in cells.column_names if n in SUMS}}))

    def own_words(self, number: int, data: dict[str, IntArray]) -> IntArray:
        """The signatures of one segment's cells in its own layout."""
        none = np.zeros(0, dtype=np.int64)
        words = np.stack([data.get(name, none) for name in word_names(self._every)], axis=1)
        codes = self._every.codes(words)
        for i, own in enumerate(self._own_codes):
            codes[:, i] = own[number, codes[:, i]]
        return self._groups[number].words(codes)


def _profiles(cells: pa.Table, families: int, segments: int) -> pa.Table:
    """Weight by segment, family and category."""
    weight = weight_of(cells)
    segment = cells[SEGMENT].to_numpy()
    kept = segment < segments
    parts = []
    for family in range(families):
        found = cells[category_name(family)].combine_chunks()
        known = [*map(_text, found.dictionary.to_pylist()), None]
        code = found.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False).astype(np.int64)
        place, total = _totals(segment[kept] * len(known) + code[kept], weight[kept])
        number, code = np.divmod(place, len(known))
        category = pa.array([known[c] for c in code.tolist()], pa.string())
        columns = {"segment": number, "family": np.full(len(number), family, dtype=np.int32)}
        parts.append(pa.table({**columns, "category": category, "weight": total}))
    return pa.concat_tables(parts)


def _totals(place: IntArray, weight: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct places, and the weight at each."""
    distinct, at = np.unique(place, return_inverse=True)
    total = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(total, at.reshape(-1), weight)
    return distinct, total


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _sizes(cells: pa.Table) -> pa.Table:
    segments, counts = np.unique(cells[SEGMENT].to_numpy(), return_counts=True)
    return pa.table({"segment": segments, "n": counts})


def _of_segments(cells: pa.Table, segments: Sequence[int]) -> pa.Table:
    return cells.filter(pa.array(np.isin(cells[SEGMENT].to_numpy(), segments)))

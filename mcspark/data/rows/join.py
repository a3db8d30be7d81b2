"""The one join: attributes beside the scored rows, no row lost and none multiplied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import structlog
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mcspark.config import AttributeTable
from mcspark.data.formats.names import keys_told, shown
from mcspark.data.rows.contract import FAULTS, bit
from mcspark.data.rows.rejection import ALLOWED_ROWS
from mcspark.data.tables import where
from mcspark.errors import ContractError
from mcspark.runtime.columns import column

log = structlog.get_logger(__name__)

UNMATCHED = "__unmatched"
"""Working column: bit i is set on a row that attribute table i does not have."""


def left_join(
    left: DataFrame, right: DataFrame, key: Sequence[str], marks: Sequence[str], columns: Sequence[Column]
) -> DataFrame:
    """Left join on the key, with these columns of the right side and its key by other names, ``marks``."""
    renamed = [column(name).alias(mark) for name, mark in zip(key, marks, strict=True)]
    matches = [column(name) == column(mark) for name, mark in zip(key, marks, strict=True)]
    return left.join(right.select(*renamed, *columns), on=matches, how="left")


def join_attributes(
    clean: DataFrame,
    key: Sequence[str],
    tables: Sequence[tuple[DataFrame, AttributeTable]],
    columns: Sequence[Sequence[str]],
) -> DataFrame:
    """Left join of every attribute table on the key, with the columns asked for and :data:`UNMATCHED`.

    The keys must be unique on both sides and of comparable types (:mod:`mcspark.data.rows.keys`,
    :mod:`mcspark.data.rows.schema`), and no clean row may have a null in its key; attribute rows with a null
    in theirs match nothing, and Spark drops them before it shuffles.

    Parameters
    ----------
    clean : DataFrame
        Accepted scored rows.
    key : sequence of str
        Names of the key columns on both sides.
    tables : sequence of (DataFrame, AttributeTable)
    columns : sequence of sequence of str
        Columns to take from each table, distinct from each other and from those of ``clean``.
    """
    joined, missed = clean, F.lit(0)
    for i, ((frame, _), names) in enumerate(zip(tables, columns, strict=True)):
        marks = [f"__key_{i}_{j}" for j in range(len(key))]
        joined = left_join(joined, frame, key, marks, [column(name) for name in names])
        missed = missed.bitwiseOR(F.when(column(marks[0]).isNull(), F.lit(1 << i)).otherwise(F.lit(0)))
    working = [f"__key_{i}_{j}" for i in range(len(tables)) for j in range(len(key))]
    return joined.withColumn(UNMATCHED, missed).drop(*working)


def joined_counts(
    joined: DataFrame, tables: int, categories: Sequence[tuple[str, int]] = ()
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Rows that each attribute table does not have, and rows that have no category; one job.

    Parameters
    ----------
    joined : DataFrame
    tables : int
    categories : sequence of (str, int)
        Category columns, and the bits of the tables that a row must have to be counted for its null.
    """
    per_mask = joined.groupBy(column(UNMATCHED)).agg(
        F.count(F.lit(1)).alias("n"),
        *(F.count_if(column(name).isNull()).alias(f"null_{i}") for i, (name, _) in enumerate(categories)),
    )
    found = per_mask.collect()
    unmatched = (sum(row["n"] for row in found if row[UNMATCHED] >> i & 1) for i in range(tables))
    nulls = (
        sum(row[f"null_{i}"] for row in found if not row[UNMATCHED] & needed)
        for i, (_, needed) in enumerate(categories)
    )
    return tuple(unmatched), tuple(nulls)


def refuse_unmatched(
    joined: DataFrame, key: Sequence[str], tables: Sequence[AttributeTable], counts: Sequence[int]
) -> None:
    """Refuse the run if a table with ``on_unmatched: fail`` lacks a row.

    Raises
    ------
    ContractError
        With the count and up to five keys.
    """
    for i, (table, count) in enumerate(zip(tables, counts, strict=True)):
        if table.on_unmatched == "fail" and count:
            lacking = joined.where(column(UNMATCHED).bitwiseAND(1 << i) != 0)
            examples = lacking.select(*(column(name) for name in key)).take(5)
            raise ContractError(
                f"{where(table)}: no attributes for {count} scored row(s), such as "
                f"{', '.join(shown(row) for row in examples)}; complete the table, or set on_unmatched to "
                "unknown or reject"
            )


def refuse_no_match(
    clean: DataFrame,
    attributes: Iterable[tuple[AttributeTable, DataFrame, int]],
    key: Sequence[str],
    rows: int,
) -> None:
    """Refuse attribute tables that no row matches, and warn of those that few match: keys of two spellings.

    Parameters
    ----------
    clean : DataFrame
        Accepted scored rows.
    attributes : iterable of (AttributeTable, DataFrame, int)
        Each table, and how many rows it lacks.
    key : sequence of str
        Key columns.
    rows : int
        Accepted rows.

    Raises
    ------
    ContractError
        With keys of both sides, if there are more than a few rows.
    """
    for table, frame, count in attributes:
        source = where(table)
        if rows <= ALLOWED_ROWS or count <= rows / 2:
            continue
        columns = [column(name) for name in key]
        scored, known = (side.select(*columns).take(5) for side in (clean, frame))
        reported = keys_told(scored, known)
        if count == rows:
            or_else = {"reject": "set allow_empty to publish an empty output"}
            raise ContractError(
                f"{source}: no attributes for any of {rows} scored rows; {reported}; write the keys of both "
                f"tables alike, or {or_else.get(table.on_unmatched, 'leave the table out')}"
            )
        log.warning("most scored rows have no attributes", table=source, rows=count, of=rows, keys=reported)


def mark_unmatched(joined: DataFrame, tables: Sequence[AttributeTable]) -> DataFrame:
    """Add the column of faults: rows that a table with ``on_unmatched: reject`` lacks are rejected."""
    rejecting = sum(1 << i for i, table in enumerate(tables) if table.on_unmatched == "reject")
    lacking = column(UNMATCHED).bitwiseAND(rejecting) != 0
    return joined.withColumn(FAULTS, F.when(lacking, F.lit(bit("unmatched"))).otherwise(F.lit(0)))

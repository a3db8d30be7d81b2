"""Keys that name one row: an exact test by hashes, and the documented way to mend repeated keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType, IntegralType, StringType

from mcspark.data.formats.names import shown
from mcspark.data.rows.contract import FAULTS, bit
from mcspark.errors import ContractError
from mcspark.runtime.columns import column, tried
from mcspark.runtime.tasks.blocks import by_bucket, to_blocks, to_driver

_HASH = "__hash"

UNSORTABLE = "mcspark: text that has no order in time"
"""What a pass over such text fails with."""


def check_unique(df: DataFrame, key: Sequence[str], *, source: str, mend: str) -> None:
    """Refuse a table in which two rows have one key; rows with a null in the key are not looked at.

    Equal keys have equal hashes, so distinct hashes prove distinct keys, and only 8 bytes a row are
    shuffled. Where hashes repeat (two rows among 10**8 do by chance in 0.03 % of tables) the keys decide.

    Parameters
    ----------
    df : DataFrame
    key : sequence of str
    source, mend : str
        Name of the table, and what its owner can do, for the message.

    Raises
    ------
    ContractError
        With the number of repeated keys, the rows that have them, and up to five of them.
    """
    hashed = F.xxhash64(*(column(name) for name in key)).alias(_HASH)
    present = df.select(*(column(name) for name in key), hashed)
    for name in key:
        present = present.where(column(name).isNotNull())
    hashes = present.select(_HASH)
    repeated = hashes.groupBy(_HASH).count().where("count > 1").select(_HASH)
    if not repeated.take(1):
        return
    suspects = present.join(repeated, on=_HASH, how="left_semi")
    keys = suspects.groupBy(*(column(name) for name in key)).agg(F.count(F.lit(1)).alias("__rows"))
    keys = keys.where("__rows > 1")
    total = keys.agg(F.count(F.lit(1)), F.sum("__rows")).head()
    if total is None or not total[0]:
        return
    examples = keys.orderBy(*(column(name) for name in key)).drop("__rows").take(5)
    raise ContractError(
        f"{source}: {total[0]} key(s) ({', '.join(key)}) are on {total[1]} rows, such as "
        f"{', '.join(shown(row) for row in examples)}; {mend}"
    )


def supersede(df: DataFrame, key: Sequence[str], latest_by: str) -> DataFrame:
    """Mark all rows of a key but the latest as superseded, so that they are counted among the rejected.

    The latest row stands even if it has another fault: an older one never takes its place. Rows that tie
    stay, and :func:`check_unique` refuses them. A null or NaN in ``latest_by`` is older than everything.
    Text, as in CSV, is ordered by what it says: the rows of one key have numbers, or dates and times written
    year first; a pass over other text fails (:func:`mcspark.data.rows.csv_faults.faults_told`).

    Parameters
    ----------
    df : DataFrame
        From :func:`mcspark.data.rows.contract.apply_row_rules`, with ``latest_by`` kept.
    key : sequence of str
    latest_by : str
        An ordered column: the greatest value is the latest.
    """
    names = [column(name) for name in key]
    if isinstance(df.schema[latest_by].dataType, StringType):
        number, time = sortable(latest_by)
        same = Window.partitionBy(*names)
        unsorted = column(latest_by).isNotNull() & number.isNull() & time.isNull()
        mixed = F.max(number.isNotNull()).over(same) & F.max(number.isNull() & time.isNotNull()).over(same)
        order = [number.desc_nulls_last(), time.desc_nulls_last()]
    else:
        value = column(latest_by)
        if isinstance(df.schema[latest_by].dataType, FloatType | DoubleType):
            value = F.nanvl(value, F.lit(None))  # which Spark holds to be greater than every number
        unsorted, mixed, order = F.lit(False), F.lit(False), [value.desc_nulls_last()]
    later = F.rank().over(Window.partitionBy(*names).orderBy(*order)) > 1
    old = F.when(later, F.lit(bit("superseded"))).otherwise(F.lit(0))
    stop = F.when(unsorted | mixed, F.raise_error(F.lit(UNSORTABLE)).cast("int"))
    keyed = column(FAULTS).bitwiseAND(bit("null_key")) == 0
    # Rows without a key stay out of the window: they would all meet in one task.
    marked = df.where(keyed).withColumn(FAULTS, F.coalesce(stop, column(FAULTS).bitwiseOR(old)))
    return marked.unionByName(df.where(~keyed))


def sortable(name: str) -> tuple[Column, Column]:
    """A column of text as numbers, exact to 9 decimals, and as points in time; null where it is neither."""
    dated = column(name).rlike(r"^\s*\d{4}-\d{1,2}-\d{1,2}")
    return tried(name, "decimal(38, 9)"), F.when(dated, tried(name, "timestamp"))


@dataclass(frozen=True)
class KeyCensus:
    """What the hashes of all keys say about several tables.

    Attributes
    ----------
    repeated : tuple of bool
        Whether a hash repeats within each table; if none does, no key does.
    absent : tuple of int or None
        Rows of the first table whose hash each further table lacks; None where a key column has other types
        in the two, whose hashes do not compare. An unmatched row is missed if its hash is that of another
        key: with 10**8 rows on both sides this happens to one row in 0.05 % of tables.
    unused : tuple of int or None
        Rows of each further table whose hash the first one lacks, likewise.
    """

    repeated: tuple[bool, ...]
    absent: tuple[int | None, ...]
    unused: tuple[int | None, ...]


def key_census(tables: Sequence[DataFrame], key: Sequence[str]) -> KeyCensus:
    """Look at the keys of all tables together: 8 bytes a row are shuffled, once.

    Parameters
    ----------
    tables : sequence of DataFrame
        Rows with a null in the key are not looked at.
    key : sequence of str
    """
    n = len(tables)
    blocks = [to_blocks(_hashes(t, key), partial(_tagged, number=i), _HASH) for i, t in enumerate(tables)]
    counts = to_driver(by_bucket(reduce(DataFrame.union, blocks), partial(_counted, tables=n)))
    totals = [0] * (3 * n - 2) if counts is None else [int(pc.sum(column).as_py()) for column in counts]
    comparable = [_key_types(table, key) == _key_types(tables[0], key) for table in tables[1:]]

    def known(found: Sequence[int]) -> tuple[int | None, ...]:
        return tuple(count if same else None for count, same in zip(found, comparable, strict=True))

    return KeyCensus(
        tuple(t > 0 for t in totals[:n]), known(totals[n : 2 * n - 1]), known(totals[2 * n - 1 :])
    )


def _tagged(table: pa.Table, number: int) -> pa.Table:
    return table.append_column("table", pa.array(np.full(len(table), number, dtype=np.int8)))


def _counted(table: pa.Table, tables: int) -> pa.Table:
    hashes, origin = table[_HASH].to_numpy(), table["table"].to_numpy()
    found = census_of([np.sort(hashes[origin == i]) for i in range(tables)])
    return pa.table({f"c{i}": [value] for i, value in enumerate(found)})


def _key_types(table: DataFrame, key: Sequence[str]) -> list[DataType | str]:
    types = [table.schema[name].dataType for name in key]
    return ["whole number" if isinstance(kind, IntegralType) else kind for kind in types]


def _hashes(table: DataFrame, key: Sequence[str]) -> DataFrame:
    whole = [isinstance(table.schema[name].dataType, IntegralType) for name in key]
    # Whole numbers of every width have one hash.
    values = [column(name).cast("long") if w else column(name) for name, w in zip(key, whole, strict=True)]
    present = reduce(Column.__and__, (value.isNotNull() for value in values))
    return table.where(present).select(F.xxhash64(*values).alias(_HASH))


def census_of(hashes: Sequence[NDArray[np.int64]]) -> list[int]:
    """Repetitions within each sorted array, what of the first each further one lacks, and the reverse."""
    first = hashes[0]
    repeated = [int((table[1:] == table[:-1]).sum()) for table in hashes]
    absent = [_lacking(other, first) for other in hashes[1:]]
    unused = [_lacking(first, other) for other in hashes[1:]]
    return [*repeated, *absent, *unused]


def _lacking(table: NDArray[np.int64], wanted: NDArray[np.int64]) -> int:
    """How many of the wanted hashes a sorted table lacks."""
    if not len(table):
        return len(wanted)
    place = np.minimum(np.searchsorted(table, wanted), len(table) - 1)
    return int((table[place] != wanted).sum())

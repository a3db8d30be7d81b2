"""How a table is written aside: the files of each format, and how many tasks write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from mcspark.data.formats.lake import PROVIDERS
from mcspark.engine.choice import engine_of
from mcspark.errors import ConfigurationError
from mcspark.runtime.columns import column

ROWS_A_FILE = 2_000_000
"""No file has more rows."""

_ROWS_A_TASK = 50_000
"""No file has fewer rows on average, unless the table has: thousands of tiny files slow every reader down."""


def tasks_for(spark: SparkSession, rows: int) -> int:
    """Enough tasks for the cluster and for :data:`ROWS_A_FILE`, none with a handful of rows."""
    slots = engine_of(spark).cores()
    return max(1, -(-rows // ROWS_A_FILE), min(slots, -(-rows // _ROWS_A_TASK)))


def writer(table_format: str) -> Callable[[DataFrame, str], None]:
    """The function that writes a table of this format aside, to a new folder.

    Raises
    ------
    ConfigurationError
        If there is none.
    """
    try:
        return WRITERS[table_format]
    except KeyError:
        raise ConfigurationError(
            f"output format {table_format!r} cannot be written; choose one of {sorted(WRITERS)}"
        ) from None


def _parquet(df: DataFrame, folder: str) -> None:
    named = df.select(*(column(name) for name in df.columns))
    named.write.option("maxRecordsPerFile", ROWS_A_FILE).mode("error").parquet(folder)


def parquet_bytes(rows: Sequence[tuple[Any, ...]], schema: StructType) -> bytes:
    """The Parquet file with these rows, in the order of the schema's columns."""
    plain = [dict(zip(schema.names, row, strict=True)) for row in rows]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(plain, to_arrow_schema(schema)), sink, compression="snappy")
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]  # pyarrow has no types


WRITERS: dict[str, Callable[[DataFrame, str], None]] = {
    "parquet": _parquet,
    # A table that commits by itself takes its rows from files like these.
    **dict.fromkeys(PROVIDERS, _parquet),
}

"""How a table is written aside: the files of each format, and how many tasks write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from mcspark.data.formats.lake import PROVIDERS
from mcspark.engine.choice import engine_of
from mcspark.engine.literal import literal_reader
from mcspark.errors import ConfigurationError
from mcspark.runtime.columns import column
from mcspark.runtime.files.files import Files

ROWS_A_FILE = 2_000_000
"""No file has more rows."""

_ROWS_A_TASK = 50_000
"""No file has fewer rows on average, unless the table has: thousands of tiny files slow every reader down."""

_FEW_FILES = 8


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


def rows_written(spark: SparkSession, folder: str, schema: StructType) -> int:
    """Count what :func:`writer` has left in a folder, by the footers of its files.

    Those of a few files are read here, which is sooner done than a job is started.
    """
    files = [name for name in Files(spark, folder).names(folder) if not name.startswith(("_", "."))]
    if len(files) > _FEW_FILES:
        return literal_reader(spark).schema(schema).parquet(folder).count()
    engine = engine_of(spark)
    return sum(engine.parquet_rows(f"{folder}/{name}") for name in files)


def table_of(rows: Sequence[tuple[Any, ...]], schema: StructType) -> pa.Table:
    """These rows, in the order of the schema's columns."""
    plain = [dict(zip(schema.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(plain, to_arrow_schema(schema))


WRITERS: dict[str, Callable[[DataFrame, str], None]] = {
    "parquet": _parquet,
    # A table that commits by itself takes its rows from files like these.
    **dict.fromkeys(PROVIDERS, _parquet),
}

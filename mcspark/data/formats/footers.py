"""Schemas of Parquet files, column by column: one that Spark cannot read spoils no other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from mcspark.engine.choice import engine_of
from mcspark.engine.errors import SPARK_ERRORS
from mcspark.engine.interface import ParquetSchema
from mcspark.errors import ContractError
from mcspark.runtime.files.files import Files, java_reason, leaf

THREADS = 8

_MENDS = (
    (re.compile(r"TIMESTAMP\(NANOS"), "write it in microseconds"),
    (re.compile(r"\(TIME"), "write it as text, or as a whole number"),
    (re.compile(r"\(DECIMAL"), "write it with at most 38 digits"),
    (re.compile(r"\(FLOAT16"), "write it as float32"),
)


@dataclass(frozen=True)
class Footer:
    """The columns of a file.

    Parameters
    ----------
    schema : StructType
        Of those that Spark can read, without the promise that none is null.
    unreadable : mapping of str to str
        The other ones, and what is wrong with each.
    """

    schema: StructType
    unreadable: Mapping[str, str]

    @property
    def types(self) -> dict[str, str]:
        """Names of the types, as every message has them."""
        readable = {f.name: f.dataType.simpleString() for f in self.schema.fields}
        return readable | dict.fromkeys(self.unreadable, "unreadable")


def footers_of(spark: SparkSession, table: str, paths: Sequence[str]) -> list[Footer]:
    """The footer of each file.

    Parameters
    ----------
    spark : SparkSession
    table : str
        For messages.
    paths : sequence of str

    Raises
    ------
    ContractError
        If a file is not Parquet, or holds something because of which Spark can read none of its columns.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda path: _opened(spark, table, path), paths))
    distinct = {schema.text: schema for schema in found}
    converted = {text: _converted(schema) for text, schema in distinct.items()}
    return [converted[schema.text] for schema in found]


def _opened(spark: SparkSession, table: str, path: str) -> ParquetSchema:
    try:
        return engine_of(spark).parquet_schema(path)
    except SPARK_ERRORS as error:
        if halves := _half_floats(spark, path):
            raise ContractError(
                f"{table}: {leaf(path)} has half floats ({', '.join(halves)}), and Spark reads no column of "
                "such a file; write them as float32, or leave them out"
            ) from error
        raise ContractError(
            f"{table}: {leaf(path)} is not a readable Parquet file ({java_reason(error)}); "
            "remove it or write it again"
        ) from error


def _half_floats(spark: SparkSession, path: str) -> list[str]:
    """Columns of half floats, where the file is on this machine."""
    files = Files(spark, path)
    try:
        schema = pq.read_schema(files.local_name(path)) if files.is_local else pa.schema([])
    except (OSError, ValueError, pa.ArrowException):
        return []
    return [field.name for field in schema if "halffloat" in str(field.type)]


def _converted(found: ParquetSchema) -> Footer:
    try:
        return Footer(found.struct(), {})
    except SPARK_ERRORS:
        schema, unreadable = StructType(), {}
        for name, column in found.columns():
            try:
                schema.add(column.struct().fields[0])
            except SPARK_ERRORS:
                unreadable[name] = _in_words(column.text)
        return Footer(schema, unreadable)


def _in_words(kind: str) -> str:
    mend = next((words for pattern, words in _MENDS if pattern.search(kind)), "write it with another type")
    return f"{kind}: Spark cannot read this type; {mend}"

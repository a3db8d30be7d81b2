"""The one reader of tables: nothing inferred, nothing skipped, and schema drift refused early."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from mcspark.config import AttributeTable, ScoredTable, redact_uri
from mcspark.data.drift import csv_header, decoded, files_of, refuse_parquet_drift
from mcspark.data.names import close_to, differing_in_case
from mcspark.data.pointer import pointed_folders
from mcspark.errors import ConfigurationError, ContractError
from mcspark.identifiers import quote_table
from mcspark.runtime.columns import column
from mcspark.runtime.files import Files, java_reason, parent

_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"


def where(source: ScoredTable | AttributeTable) -> str:
    """The path or the name of the table, for messages, counts and the source of rejected rows: no secrets."""
    return redact_uri(str(source.path or source.table))


def read_table(
    spark: SparkSession, source: ScoredTable | AttributeTable, columns: Sequence[str] | None = None
) -> DataFrame:
    """The table as a DataFrame, limited to its partition; only schemas and file names are read.

    Codes stay as they are: CSV columns and the values of partition folders are strings. Files that Spark
    would skip or read in part (missing, corrupt) fail instead.

    Parameters
    ----------
    spark : SparkSession
    source : ScoredTable or AttributeTable
        Path or table, format, and the partition to read, if it has one.
    columns : sequence of str, optional
        The columns that will be used. Given, only their drift between files is refused.

    Raises
    ------
    ContractError
        If the table is missing, empty of files or unreadable, its files disagree about a column, two columns
        differ only in case, or it has no such partition column.
    ConfigurationError
        If the format needs classes that are not there.
    """
    partition: Mapping[str, str] = getattr(source, "partition", None) or {}
    name = str(source.path or source.table)
    if not source.path:
        frame = _named(spark, name)
    elif source.format == "csv":
        frame = _csv(spark, name, partition)
    elif source.format == "parquet":
        frame = _parquet(spark, name, partition, columns)
    else:
        frame = _lake(spark, name, source.format)
    twins = differing_in_case(frame.columns)
    if twins:
        raise ContractError(f"{name}: columns that differ only in case: {twins}; rename one of them")
    return _only(frame, partition, name)


def _only(frame: DataFrame, partition: Mapping[str, str], name: str) -> DataFrame:
    for key, value in partition.items():
        if key not in frame.columns:
            raise ContractError(
                f"{name}: no column {key!r} to choose the partition {key}={value} by; "
                f"the table has {close_to(key, frame.columns) or frame.columns}"
            )
        # The literal takes the type of the column, never the other way round: that would forbid pruning.
        frame = frame.where(column(key) == F.lit(str(value)).cast(frame.schema[key].dataType))
    return frame


@contextmanager
def _partition_values_as_text(spark: SparkSession) -> Iterator[None]:
    """A folder ``st=01`` means the code 01, in a session that its user configured too."""
    before = spark.conf.get(_INFERENCE)
    spark.conf.set(_INFERENCE, "false")
    try:
        yield
    finally:
        spark.conf.set(_INFERENCE, str(before))


def _reader(spark: SparkSession) -> DataFrameReader:
    return spark.read.option("ignoreCorruptFiles", "false").option("ignoreMissingFiles", "false")


def _parquet(
    spark: SparkSession, path: str, partition: Mapping[str, str], columns: Sequence[str] | None
) -> DataFrame:
    _refuse_missing(spark, path)
    with unreadable_is_refused(path), _partition_values_as_text(spark):
        pointed = pointed_folders(Files(spark, path), path, partition)
        reader = _reader(spark).option("basePath", path) if pointed else _reader(spark)
        frame = reader.parquet(*(pointed or [path]))
        files = files_of(frame, partition)
        refuse_parquet_drift(spark, path, files, columns)
        if partition and files:  # its own schema, not that of a file in another partition
            folders = sorted({parent(decoded(uri)) for uri in files})
            frame = _reader(spark).option("basePath", path).parquet(*folders)
    return frame


def _csv(spark: SparkSession, path: str, partition: Mapping[str, str]) -> DataFrame:
    _refuse_missing(spark, path)
    reader = _reader(spark).option("header", "true").option("escape", '"')
    with unreadable_is_refused(path), _partition_values_as_text(spark):
        found = reader.csv(path)
        header = csv_header(spark, path, files_of(found, partition) or files_of(found, {}))
        schema = StructType([StructField(name, StringType()) for name in header])
        # A header that disagrees with the schema is an error, not a shift of the columns.
        return reader.option("enforceSchema", "false").schema(schema).csv(path)


def _lake(spark: SparkSession, path: str, table_format: str) -> DataFrame:
    with unreadable_is_refused(path):
        return spark.read.format(table_format).load(path)


def _named(spark: SparkSession, name: str) -> DataFrame:
    with unreadable_is_refused(name):
        return spark.table(quote_table(name))


def _refuse_missing(spark: SparkSession, path: str) -> None:
    try:
        present = Files(spark, path).exists(path)
    except Py4JJavaError as error:
        raise ContractError(f"{path}: cannot be read ({java_reason(error)})") from error
    if not present:
        raise ContractError(f"{path}: no such table; check the path, or make the table first")


@contextmanager
def unreadable_is_refused(name: str) -> Iterator[None]:
    """Whatever Spark says against reading the table, as an error that names the table and the way out."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        # Spark reports some of its own conditions as plain Java exceptions.
        reason = (
            java_reason(error) if isinstance(error, Py4JJavaError) else str(error).strip().splitlines()[0]
        )
        if "DATA_SOURCE_NOT_FOUND" in reason:
            raise ConfigurationError(
                f"{name}: Spark has no reader for this format ({reason}); add its jars with --packages"
            ) from error
        if "UNABLE_TO_INFER_SCHEMA" in reason:
            raise ContractError(f"{name}: no data files in this folder; is it the right one?") from error
        if "COLUMN_ALREADY_EXISTS" in reason:
            raise ContractError(f"{name}: columns that differ only in case; rename one ({reason})") from error
        raise ContractError(f"{name}: cannot be read as a table ({reason})") from error

"""The one reader of tables: nothing inferred, nothing skipped, and schema drift refused early."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import structlog
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from mcspark.config import redact_uri
from mcspark.config.csv_text import CsvText
from mcspark.config.tables import InputTable
from mcspark.data.formats.csv_reader import read_csv
from mcspark.data.formats.drift import refuse_parquet_drift
from mcspark.data.formats.lake import by_path
from mcspark.data.formats.layout import is_hidden
from mcspark.data.formats.listing import list_table, refuse_lake
from mcspark.data.formats.names import close_to, twins
from mcspark.data.formats.pointer import pointed_folders
from mcspark.engine.errors import SPARK_ERRORS
from mcspark.engine.literal import literal_reader
from mcspark.errors import ConfigurationError, ContractError
from mcspark.identifiers import quote_table
from mcspark.runtime.columns import column, tried_text
from mcspark.runtime.files.files import Files, java_reason, leaf, parent
from mcspark.runtime.process.settings import setting

log = structlog.get_logger(__name__)

_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"


def where(source: InputTable) -> str:
    """The path or the name of the table, for messages, counts and the source of rejected rows: no secrets."""
    return redact_uri(str(source.path or source.table))


def read_table(
    spark: SparkSession, source: InputTable, columns: Sequence[str] | None = None,
    *, csv_guarded: bool = True,
) -> DataFrame:  # fmt: skip
    """The table as a DataFrame, limited to its partition; only schemas and file names are read.

    Codes stay as they are: CSV columns and the values of partition folders are strings. Files that Spark
    would skip or read in part (missing, corrupt) fail instead.

    Parameters
    ----------
    spark : SparkSession
    source : InputTable
        Path or table, format, and the partition to read, if it has one.
    columns : sequence of str, optional
        The columns that will be used. Given, no other is refused because files disagree about it or Spark
        cannot read it.
    csv_guarded : bool
        Of :func:`mcspark.data.formats.csv_reader.read_csv`.

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
        frame = _csv(spark, name, partition, source.csv or CsvText(), guarded=csv_guarded)
    elif source.format == "parquet":
        frame = _parquet(spark, name, partition, columns)
    else:
        frame = _lake(spark, name, source.format)
    if words := twins(frame.columns):
        raise ContractError(f"{name}: {words}")
    return _only(frame, partition, name)


def _only(frame: DataFrame, partition: Mapping[str, str], name: str) -> DataFrame:
    for key, value in partition.items():
        if key not in frame.columns:
            raise ContractError(
                f"{name}: no column {key!r} to choose the partition {key}={value} by; "
                f"the table has {close_to(key, frame.columns) or frame.columns}"
            )
        # The literal takes the type of the column, never the other way round: that would forbid pruning.
        frame = frame.where(column(key) == tried_text(str(value), frame.schema[key].dataType.simpleString()))
    return frame


def _partition_values_as_text(spark: SparkSession) -> AbstractContextManager[None]:
    """A folder ``st=01`` means the code 01, in a session that its user configured too."""
    return setting(spark, _INFERENCE, "false")


@dataclass(frozen=True)
class FilesOfTable:
    """What Spark is to list, the files that it must find there, partition columns, and what is no data."""

    roots: list[str]
    files: list[str]
    keys: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def _parquet(
    spark: SparkSession, path: str, partition: Mapping[str, str], columns: Sequence[str] | None
) -> DataFrame:
    with unreadable_is_refused(path), _partition_values_as_text(spark):
        found = files_of_table(spark, path, "parquet", partition)
        _tell(path, found)
        schema = refuse_parquet_drift(spark, path, found.files, columns).schema
        if words := twins(schema.names):
            raise ContractError(f"{path}: {words}")
        # A column of the files that is a folder too has the folder's value, as text.
        of_folders = {key.lower() for key in found.keys}
        own = StructType([f for f in schema.fields if f.name.lower() not in of_folders])
        reader = literal_reader(spark).schema(own)
        if found.roots != [path]:
            reader = reader.option("basePath", path)
        frame = reader.parquet(*found.roots)
        _refuse_unread(path, frame, found.files)
    return frame


def _csv(
    spark: SparkSession, path: str, partition: Mapping[str, str], options: CsvText, *, guarded: bool
) -> DataFrame:
    with unreadable_is_refused(path), _partition_values_as_text(spark):
        found = files_of_table(spark, path, "csv", partition)
        _tell(path, found)
        return read_csv(
            spark, path, found.files, options, lambda: literal_reader(spark),
            keys=found.keys, guarded=guarded,
        )  # fmt: skip


def files_of_table(
    spark: SparkSession, path: str, table_format: str, partition: Mapping[str, str]
) -> FilesOfTable:
    """The files of a table of Parquet or CSV, or of its partition; of all partitions where this has none.

    Raises
    ------
    ContractError
        If there are none, or rows of the table would not be read.
    """
    files = Files(spark, path)
    try:
        if not files.exists(path):
            raise ContractError(f"{path}: no such table; check the path, or make the table first")
        if not files.is_folder(path):
            if is_hidden(leaf(path)):
                raise ContractError(f"{path}: no reader looks at names that begin with '_' or '.'; rename it")
            refuse_lake(path, parent(path), files.entries, table_format)
            return FilesOfTable([path], [path])
        pointed = pointed_folders(files, path, partition)
        if pointed:  # this program's own, on an object store
            below = pointed[0][len(path.rstrip("/")) :].split("/")
            inside = [f"{run}/{name}" for run in pointed for name in files.names(run) if not is_hidden(name)]
            return FilesOfTable(
                pointed, inside, tuple(part.partition("=")[0] for part in below if "=" in part)
            )
        listed = list_table(path, path, files.entries, table_format, partition)
    except OSError as error:
        raise ContractError(f"{path}: cannot be read ({error.strerror})") from error
    except SPARK_ERRORS as error:
        raise ContractError(f"{path}: cannot be read ({java_reason(error)})") from error
    if not listed.files:
        if partition:
            return files_of_table(spark, path, table_format, {})
        raise ContractError(f"{path}: no data files in this folder; is it the right one?")
    inside = [f"{path.rstrip('/')}/{name}" for name in listed.files]
    roots = sorted({parent(file) for file in inside}) if partition and listed.keys else [path]
    return FilesOfTable(roots, inside, listed.keys, listed.left_out)


def _tell(path: str, found: FilesOfTable) -> None:
    log.info(
        "files of the table", table=path, files=len(found.files),
        left_out=len(found.left_out), such_as=list(found.left_out[:3]),
    )  # fmt: skip


def _refuse_unread(path: str, frame: DataFrame, files: Sequence[str]) -> None:
    """Whatever the rules about names say: what Spark will read are these files."""
    read = [uri for uri in frame.inputFiles() if not is_hidden(leaf(uri))]
    if len(read) != len(files):
        raise ContractError(
            f"{path}: Spark would read {len(read)} of its {len(files)} files; "
            "write it anew, or run again if it changes at this moment"
        )


def _lake(spark: SparkSession, path: str, table_format: str) -> DataFrame:
    with unreadable_is_refused(path):
        if table_format == "iceberg":  # whose own reader takes what follows a # for a table of metadata
            return by_path(spark, "iceberg", path, run_id="").read()
        return spark.read.format(table_format).load(path)  # which takes no patterns


def _named(spark: SparkSession, name: str) -> DataFrame:
    with unreadable_is_refused(name):
        return literal_reader(spark).table(quote_table(name))


@contextmanager
def unreadable_is_refused(name: str) -> Iterator[None]:
    """Whatever Spark says against reading the table, as an error that names the table and the way out."""
    try:
        yield
    except SPARK_ERRORS as error:
        # Spark reports some of its own conditions as plain Java exceptions.
        reason = (
            str(error).strip().splitlines()[0] if isinstance(error, PySparkException) else java_reason(error)
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

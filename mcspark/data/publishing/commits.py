"""What is left to do when a table has been written aside and counted: commit it where it belongs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from mcspark.data.formats.lake import LakeTable, condition
from mcspark.data.formats.pointer import RUNS
from mcspark.data.publishing.target import Target, described
from mcspark.engine.literal import literal_reader
from mcspark.errors import ConfigurationError, ContractError, TransientError
from mcspark.identifiers import quote_identifier, quote_table
from mcspark.runtime.columns import with_columns
from mcspark.runtime.files.files import Files

_OWN = ("calibrated_score", "reasons", "metric")
"""Each is in every table of one kind: scores, rejected rows, metrics."""


class Commit(Protocol):
    """The last step of publishing one table."""

    def commit(self, staging: str) -> None:
        """Make what was written aside visible."""

    def undo(self) -> None:
        """Put back what was there before; nothing if it is there still."""


def commit_of(
    spark: SparkSession, target: Target, schema: StructType, rows: int, run_id: str
) -> Commit | None:
    """What a target needs beside folders; None for a folder that no catalog knows.

    Raises
    ------
    ContractError
        If the catalog's table cannot take these columns.
    ConfigurationError
        If a table that commits by itself is not one of this program.
    """
    if target.provider:
        table = target.lake_table(spark, run_id)
        _refuse_others(table, schema)
        return LakeCommit(table, target.partition, schema, rows)
    return Registration(spark, target, schema) if target.table else None


def _refuse_others(table: LakeTable, schema: StructType) -> None:
    """Refuse to replace a table that lacks what a run adds to every table of its kind."""
    if not table.exists():
        return
    present = table.read().columns
    lacking = [name for name in _OWN if name in schema.names and name not in present]
    if lacking:
        raise ConfigurationError(
            f"{table.shown}: is a table without the column {lacking[0]}, so this program has not made it, "
            "and does not replace it; name another table, or drop this one"
        )


class LakeCommit:
    """Replace a table, or its partition, by the rows that were written aside."""

    def __init__(
        self, table: LakeTable, partition: Mapping[str, str] | None, schema: StructType, rows: int
    ) -> None:
        self._table = table
        self._partition = partition
        self._schema = schema
        self._rows = rows
        self._before: int | None = None
        self._done = False

    def commit(self, staging: str) -> None:
        """Copy the rows in one commit, and count them in the new version."""
        spark = self._table.spark
        rows = literal_reader(spark).schema(self._schema).parquet(staging)
        rows = with_columns(rows, {key: F.lit(value) for key, value in (self._partition or {}).items()})
        self._before = self._table.version()
        self._table.replace(rows, self._partition)
        self._done = True
        now: DataFrame = self._table.read()
        written = (now.where(condition(self._partition)) if self._partition else now).count()
        if written != self._rows:
            raise TransientError(
                f"{self._table.shown}: {written} rows are in the new version where {self._rows} were expected"
            )

    def undo(self) -> None:
        """Restore the version before, in a commit of its own."""
        if self._done:
            self._table.restore(self._before, self._partition)
            self._done = False


class Registration:
    """Tell the catalog about a folder of Parquet files: the table, its partition, that it changed."""

    def __init__(self, spark: SparkSession, target: Target, schema: StructType) -> None:
        self._spark = spark
        self._target = target
        self._name = quote_table(str(target.table))
        self._schema = schema
        self._refuse_other_columns()

    def _refuse_other_columns(self) -> None:
        target = self._target
        if not described(self._spark, str(target.table)):
            return
        present = {f.name: f.dataType.simpleString() for f in self._spark.table(self._name).schema.fields}
        new = {f.name: f.dataType.simpleString() for f in self._schema.fields}
        new |= dict.fromkeys(target.partition or {}, "string")
        wrong = [f"{name} {kind}" for name, kind in new.items() if present.get(name) != kind]
        if wrong:
            raise ContractError(
                f"{target.table}: the catalog's table has no column {', '.join(wrong)}; "
                "alter the table, or name another one"
            )

    def commit(self, staging: str) -> None:
        """Make the table and the partition known; the folder itself is in place."""
        partition = self._target.partition or {}
        fields = [*self._schema.fields, *(StructType().add(key, StringType()).fields[0] for key in partition)]
        columns = ", ".join(f"{quote_identifier(f.name)} {f.dataType.simpleString()}" for f in fields)
        by = ", ".join(map(quote_identifier, partition))
        place = _quoted(Files(self._spark, self._target.path).qualify(self._target.path))
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self._name} ({columns}) USING parquet "
            f"{f'PARTITIONED BY ({by}) ' if by else ''}LOCATION '{place}'"
        )
        values = ", ".join(f"{quote_identifier(key)} = '{value}'" for key, value in partition.items())
        slice_ = f"PARTITION ({values}) " if partition else ""
        if partition:
            self._spark.sql(f"ALTER TABLE {self._name} ADD IF NOT EXISTS {slice_}")
        if f"/{RUNS}/" in staging:  # the catalog points to the folder of the run
            self._spark.sql(f"ALTER TABLE {self._name} {slice_}SET LOCATION '{_quoted(staging)}'")
        self._spark.sql(f"REFRESH TABLE {self._name}")

    def undo(self) -> None:
        """Nothing: the catalog knows the folder, and the folder is as it was."""


def _quoted(path: str) -> str:
    return path.replace("\\", "\\\\").replace("'", "\\'")

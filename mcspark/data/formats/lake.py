"""Tables that commit by themselves: Delta Lake and Iceberg, by path or by a name in a catalog.

Such a table keeps its versions, so replacing it, or one partition of it, is one commit, and an earlier
version can be put back. Every commit names its run; a Delta commit also carries a transaction id, so that a
run that was thought dead and wakes up late cannot undo what a later one has written.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from hashlib import sha256
from typing import Literal

import structlog
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameWriterV2, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType, StructType

from mcspark.engine.errors import SPARK_ERRORS
from mcspark.errors import ContractError, OutputHeldError, TransientError
from mcspark.identifiers import quote_identifier, quote_table
from mcspark.runtime.columns import column
from mcspark.runtime.files.files import Files, java_reason, leaf, parent

log = structlog.get_logger(__name__)

Provider = Literal["delta", "iceberg"]
PROVIDERS: tuple[Provider, ...] = ("delta", "iceberg")

RUN_PROPERTY = "mcspark.run-id"
"""Under which a snapshot of an Iceberg table names its run; a Delta commit has it as its user metadata."""

_CONFLICTS = ("Concurrent", "CommitFailed", "CommitStateUnknown", "ValidationException")


@dataclass
class LakeTable:
    """One table, and the changes of one run to it.

    Parameters
    ----------
    spark : SparkSession
    provider : {'delta', 'iceberg'}
    name : str
        In Spark's SQL, quoted; see :func:`by_path` and :func:`by_name`.
    shown : str
        Path or name, for messages.
    run_id : str
    folder : str, optional
        Of a table by path.
    started : int
        Milliseconds; of two runs on one partition the later one has the later commit.
    """

    spark: SparkSession
    provider: Provider
    name: str
    shown: str
    run_id: str
    folder: str | None = None
    started: int = field(default_factory=lambda: int(time.time() * 1000))

    def exists(self) -> bool:
        """Whether the table is there."""
        try:
            return bool(self.spark.catalog.tableExists(self.name))
        except AnalysisException as error:
            if "[DELTA_MISSING_DELTA_TABLE]" in str(error):  # what Delta 4 says of a folder that is no table
                return False
            raise

    def version(self) -> int | None:
        """The version that readers see; None without a table or, in Iceberg, a first commit."""
        if not self.exists():
            return None
        if self.provider == "delta":
            row = self.spark.sql(f"DESCRIBE HISTORY {self.name} LIMIT 1").select("version").head()
        else:
            row = self.spark.table(f"{self.name}.refs").where("name = 'main'").select("snapshot_id").head()
        return None if row is None else int(row[0])

    def read(self, version: int | None = None) -> DataFrame:
        """The table, now or at an earlier version."""
        if version is None:
            return self.spark.table(self.name)
        # Iceberg for Spark 3 passes over the one, for Spark 4 it refuses the other.
        is_old = self.provider == "iceberg" and self.spark.version.startswith("3.")
        option = "snapshot-id" if is_old else "versionAsOf"
        return self.spark.read.option(option, str(version)).table(self.name)

    def replace(self, df: DataFrame, partition: Mapping[str, str] | None) -> None:
        """Replace the table, or one partition of it, in one commit.

        Parameters
        ----------
        df : DataFrame
            With the columns of the partition.
        partition : mapping or None

        Raises
        ------
        ContractError
            If the table has a column of another type, or other partition columns.
        OutputHeldError
            If a run that started later has written there.
        TransientError
            If another writer changed the table at the same moment.
        """
        try:
            if not self.exists():
                self._create(df, partition)
            elif partition:
                self._replace_partition(df, partition)
            elif _types(df.schema) == _types(self.read().schema):
                self._overwrite(df, F.lit(True), "")
            else:
                self._writer(df, "").using(self.provider).createOrReplace()
        except AnalysisException as error:
            raise ContractError(
                f"{self.shown}: cannot take these rows ({str(error).strip().splitlines()[0]})"
            ) from error
        except SPARK_ERRORS as error:
            reason = java_reason(error)
            if any(word in reason for word in _CONFLICTS):
                raise TransientError(
                    f"{self.shown}: changed by another writer at this moment, run again ({reason})"
                ) from error
            raise

    def restore(self, version: int | None, partition: Mapping[str, str] | None) -> None:
        """Put back what was there at an earlier version; other partitions stay as they are now.

        Parameters
        ----------
        version : int or None
            None if there was no table, or nothing in it.
        partition : mapping or None
        """
        self.started = int(time.time() * 1000)
        if version is not None and partition is None and self.provider == "delta":
            # Delta refuses to overwrite a table by a scan of its own past.
            self.spark.sql(f"RESTORE TABLE {self.name} TO VERSION AS OF {version}")
        elif version is not None:
            old = self.read(version)
            self.replace(old if partition is None else old.where(condition(partition)), partition)
        elif partition is None:
            self._drop()
        else:
            self.replace(self.read().limit(0), partition)

    def _drop(self) -> None:
        if self.folder is None:
            self.spark.sql(f"DROP TABLE {self.name} PURGE")
        else:
            Files(self.spark, self.folder).delete(self.folder)

    def _create(self, df: DataFrame, partition: Mapping[str, str] | None) -> None:
        writer = self._writer(df, "").using(self.provider)
        if partition:
            first, *rest = (column(key) for key in partition)
            writer = writer.partitionedBy(first, *rest)
        writer.create()

    def _replace_partition(self, df: DataFrame, partition: Mapping[str, str]) -> None:
        present = self.read().schema
        found = partition_columns(self.spark, self.name)
        if [name.lower() for name in found] != [name.lower() for name in partition]:
            raise ContractError(
                f"{self.shown}: is partitioned by {found or 'nothing'}, the output by {list(partition)}; "
                "name the same columns in the same order, or another table"
            )
        self._refuse_other_types(df.schema, present)
        for new in (f for f in df.schema.fields if f.name not in present.names):
            kind = new.dataType.simpleString()
            self.spark.sql(f"ALTER TABLE {self.name} ADD COLUMNS ({quote_identifier(new.name)} {kind})")
        absent = [f for f in present.fields if f.name not in df.columns]
        aligned = df.select(
            *(column(name) for name in df.columns),
            *(F.lit(None).cast(f.dataType).alias(f.name) for f in absent),
        )
        self._overwrite(aligned, condition(partition), ",".join(map("=".join, partition.items())))

    def _refuse_other_types(self, new: StructType, present: StructType) -> None:
        """Delta 4 casts what it is given; a text that is no number would become null, or end the job."""
        for name in (name for name in new.names if name in present.names):
            given, there = new[name].dataType, present[name].dataType
            numbers = isinstance(given, NumericType) and isinstance(there, NumericType)
            if given.simpleString() != there.simpleString() and not numbers:
                raise ContractError(
                    f"{self.shown}: cannot take these rows (column {name!r} is {given.simpleString()}, the "
                    f"table has {there.simpleString()}); write another table, or make the column what it was"
                )

    def _overwrite(self, df: DataFrame, where: Column, slice_: str) -> None:
        before = self.version()
        self._writer(df, slice_).overwrite(where)
        if self.provider == "delta" and not self._committed(before):
            raise OutputHeldError(
                f"{self.shown}: a run that started later has written there; this one has not"
            )

    def _writer(self, df: DataFrame, slice_: str) -> DataFrameWriterV2:
        writer = df.writeTo(self.name)
        if self.provider == "iceberg":
            return writer.option(f"snapshot-property.{RUN_PROPERTY}", self.run_id)
        # Delta writes nothing under an id whose last version is as late.
        transaction = {"txnAppId": f"mcspark:{slice_}", "txnVersion": str(self.started)}
        for key, value in (transaction | {"userMetadata": self.run_id}).items():
            writer = writer.option(key, value)
        return writer

    def _committed(self, before: int | None) -> bool:
        history = self.spark.sql(f"DESCRIBE HISTORY {self.name}")
        mine = history.where((F.col("userMetadata") == self.run_id) & (F.col("version") > F.lit(before or 0)))
        return bool(mine.take(1))


def by_path(spark: SparkSession, provider: Provider, path: str, run_id: str) -> LakeTable:
    """The table in a folder; an Iceberg one as a table of the Hadoop catalog of the folder around it."""
    place = Files(spark, path).qualify(path)
    if provider == "delta":
        return LakeTable(spark, provider, f"delta.{quote_identifier(place)}", path, run_id, place)
    catalog = hadoop_catalog(spark, parent(place))
    return LakeTable(spark, provider, f"{catalog}.{quote_identifier(leaf(place))}", path, run_id, place)


def by_name(spark: SparkSession, provider: Provider, table: str, run_id: str) -> LakeTable:
    """The table of that name in a catalog that the session knows."""
    return LakeTable(spark, provider, quote_table(table), table, run_id)


def hadoop_catalog(spark: SparkSession, warehouse: str) -> str:
    """Name of an Iceberg catalog over a folder; set up for this session, and free of its cache."""
    name = f"mcspark_{sha256(warehouse.encode()).hexdigest()[:12]}"
    settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": warehouse}
    for key, value in (settings | {".cache-enabled": "false"}).items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
    return name


def condition(partition: Mapping[str, str]) -> Column:
    """The rows of a partition."""
    equal: Sequence[Column] = [column(key) == F.lit(value) for key, value in partition.items()]
    return reduce(Column.__and__, equal)


def partition_columns(spark: SparkSession, name: str) -> list[str]:
    """The columns that a table is partitioned by, as ``DESCRIBE TABLE`` lists them."""
    rows = [row["col_name"] for row in spark.sql(f"DESCRIBE TABLE {name}").collect()]
    marks = [i for i, row in enumerate(rows) if row.startswith("# ")]
    if not marks:
        return []
    end = next((i for i, row in enumerate(rows) if i > marks[-1] and not row), len(rows))
    return [row for row in rows[marks[-1] + 1 : end] if not row.startswith("#")]


def _types(schema: StructType) -> list[tuple[str, str]]:
    return [(f.name, f.dataType.simpleString()) for f in schema.fields]

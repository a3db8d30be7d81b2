"""Where a table goes: a folder, a table that commits by itself, or a name in a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from mcspark.config import Output
from mcspark.data.formats.lake import PROVIDERS, LakeTable, Provider, by_name, by_path
from mcspark.data.formats.pointer import RUNS
from mcspark.errors import ConfigurationError
from mcspark.identifiers import quote_table
from mcspark.runtime.files.files import leaf, parent


@dataclass(frozen=True)
class Target:
    """Where a table goes.

    Parameters
    ----------
    path : str
        Folder of the table. For a table that a catalog keeps: what its folder would be called; the files of
        the runs lie beside it.
    format : str
        ``parquet``, ``delta`` or ``iceberg``.
    partition : mapping of str to str, optional
        The partition that is replaced, in the order of the folders; the whole table if None.
    table : str, optional
        Its name in a catalog.
    replaces_all : bool
        Whether a whole table may take the place of one that has partitions.
    """

    path: str
    format: str = "parquet"
    partition: Mapping[str, str] | None = None
    table: str | None = None
    replaces_all: bool = False

    @property
    def provider(self) -> Provider | None:
        """The format of a table that commits by itself; None for a folder."""
        return next((p for p in PROVIDERS if p == self.format), None)

    @property
    def leaf(self) -> str:
        """The folder that is replaced, or, of a table that commits by itself, a name for what is replaced."""
        folders = [f"{key}={value}" for key, value in (self.partition or {}).items()]
        root = self.path.rstrip("/")
        if self.provider:
            root, folders = f"{parent(root).rstrip('/')}/_{leaf(root)}_runs", folders or ["table"]
        return "/".join([root, *folders])

    @property
    def held(self) -> str:
        """What a run that replaces this must hold: a whole table includes its partitions."""
        return parent(self.leaf) if self.provider and not self.partition else self.leaf

    @property
    def place(self) -> str:
        """What a reader gets: the folder, the path of the whole table, or its name."""
        return self.table or (self.path.rstrip("/") if self.provider else self.leaf)

    def beside(self, suffix: str) -> Target:
        """A companion table: ``<path>_<suffix>``, same format and partition."""
        table = None if self.table is None else f"{self.table}_{suffix}"
        path = f"{self.path.rstrip('/')}_{suffix}"
        return Target(path, self.format, self.partition, table, self.replaces_all)

    def with_partition(self, partition: Mapping[str, str]) -> Target:
        """The same table, of which another partition is meant."""
        return Target(self.path, self.format, partition, self.table, self.replaces_all)

    def lake_table(self, spark: SparkSession, run_id: str) -> LakeTable:
        """The table that commits by itself, to be changed by a run."""
        assert self.provider is not None
        if self.table:
            return by_name(spark, self.provider, self.table, run_id)
        return by_path(spark, self.provider, self.path, run_id)


def located(spark: SparkSession, output: Output) -> Target:
    """The target of the configuration; a name is looked up in its catalog.

    Raises
    ------
    ConfigurationError
        If the catalog has no such schema, or the table is of a kind that no job can write.
    """
    if output.path:
        return Target(output.path, output.format, output.partition, replaces_all=output.replace_all)
    table = str(output.table)
    facts = described(spark, table)
    provider = facts.get("Provider", "").lower()
    if facts and provider not in (*PROVIDERS, "parquet"):
        kind = facts.get("Type", "table").lower()
        raise ConfigurationError(
            f"{table} ({kind}) is of format {provider or 'unknown'!r}; the output goes to a table of "
            f"format {', '.join((*PROVIDERS, 'parquet'))}; name another one"
        )
    if not provider:
        named = output.format if output.format in PROVIDERS else None
        provider = named or ("parquet" if _is_of_session_catalog(spark, table) else "iceberg")
    home = f"{_schema_location(spark, table)}/{table.rpartition('.')[2]}"
    if provider == "parquet":
        home = facts.get("Location", home).partition(f"/{RUNS}/")[0]
    return Target(home, provider, output.partition, table, output.replace_all)


def described(spark: SparkSession, table: str) -> dict[str, str]:
    """What the catalog says about a table: ``Provider``, ``Location``, ``Type``; empty if it has none."""
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {quote_table(table)}").collect()
    except AnalysisException as error:
        if "NOT_FOUND" in str(error):
            return {}
        raise ConfigurationError(f"{table}: {str(error).strip().splitlines()[0]}") from error
    facts = {row["col_name"]: row["data_type"] for row in rows}
    return {key: facts[key] for key in ("Provider", "Location", "Type") if facts.get(key)}


def _is_of_session_catalog(spark: SparkSession, table: str) -> bool:
    parts = table.split(".")
    return len(parts) < 3 and spark.conf.get(f"spark.sql.catalog.{parts[0]}", None) is None


def _schema_location(spark: SparkSession, table: str) -> str:
    """Folder of the schema; a catalog that tells none has its warehouse, or Spark's."""
    schema, _, _ = table.rpartition(".")
    schema = schema or str(spark.catalog.currentDatabase())
    try:
        rows = spark.sql(f"DESCRIBE NAMESPACE {quote_table(schema)}").collect()
    except AnalysisException as error:
        warehouse = spark.conf.get(f"spark.sql.catalog.{schema}.warehouse", None)
        if warehouse is None:
            raise ConfigurationError(
                f"{table}: no schema {schema} to write to; make it, or check the name and the catalog"
            ) from error
        return warehouse.rstrip("/")
    found = {row[0]: row[1] for row in rows}.get("Location") or str(spark.conf.get("spark.sql.warehouse.dir"))
    return found.rstrip("/")

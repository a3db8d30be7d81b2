"""Whole tables and partitions do not take each other's place by an oversight."""

from __future__ import annotations

from pyspark.sql import SparkSession

from mcspark.data.formats.lake import partition_columns
from mcspark.data.formats.pointer import POINTER
from mcspark.data.leases.ownership import MARK, is_partition
from mcspark.data.publishing.target import Target
from mcspark.errors import ConfigurationError
from mcspark.runtime.files.files import Files


def refuse_other_layout(spark: SparkSession, files: Files, target: Target) -> None:
    """Refuse a whole table that would replace all partitions unsaid, and a partition of a table without any.

    Raises
    ------
    ConfigurationError
    """
    if target.partition is None:
        found = [] if target.replaces_all else _partitions(spark, files, target)
        if found:
            raise ConfigurationError(
                f"{target.place}: has partitions ({len(found)}, such as {found[0]}), and without "
                "output.partition all of them would be replaced; name one by output.partition, or say "
                "output.replace_all: true"
            )
    elif target.provider is None and _is_plain(files, target.path):
        raise ConfigurationError(
            f"{target.path}: holds a table without partitions, of which output.partition cannot be one; name "
            "another folder, or leave output.partition out"
        )


def _partitions(spark: SparkSession, files: Files, target: Target) -> list[str]:
    if target.provider is None:
        return [name for name in files.names(target.path) if is_partition(name)]
    table = target.lake_table(spark, "")
    return partition_columns(spark, table.name) if table.exists() else []


def _is_plain(files: Files, path: str) -> bool:
    return any(
        name in (MARK, POINTER) or (name.startswith("part-") and not files.is_folder(f"{path}/{name}"))
        for name in files.names(path)
    )

"""Spark columns by their exact name, and casts that mean the same in every ANSI mode."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType

from mcspark.core.cells.groups import NUMBER
from mcspark.identifiers import quote_identifier


def column(name: str) -> Column:
    """The column of exactly this name: dots, spaces and quotes are part of it."""
    return F.col(quote_identifier(name))


def with_columns(frame: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """The frame with these columns; there may be none of them, for which Spark Connect has no plan."""
    return frame.withColumns(dict(columns)) if columns else frame


def as_double(name: str, kind: DataType | None) -> Column:
    """The column of this type as a double; null for a text that is no number, in every ANSI mode.

    Java, and with it Spark, also takes ``45D``, ``1f`` and ``0x1p-2`` for numbers. They are codes.
    """
    value = tried(name, "double")
    return F.when(column(name).rlike(f"^(?i){NUMBER}$"), value) if isinstance(kind, StringType) else value


def tried(name: str, kind: str) -> Column:
    """The column as another type; null where the value is none of it, whatever ``spark.sql.ansi.enabled``."""
    return F.expr(f"try_cast({quote_identifier(name)} as {kind})")


def tried_text(value: str, kind: str) -> Column:
    """A text as a constant of another type; null if it is none of it."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return F.expr(f"try_cast('{escaped}' as {kind})")

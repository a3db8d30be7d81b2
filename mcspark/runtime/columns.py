"""Spark columns by their exact name."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from mcspark.identifiers import quote_identifier


def column(name: str) -> Column:
    """The column of exactly this name: dots, spaces and quotes are part of it."""
    return F.col(quote_identifier(name))

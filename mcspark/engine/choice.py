"""Which implementation a session gets."""

from __future__ import annotations

from pyspark.sql import SparkSession

from mcspark.engine.classic.engine import Classic
from mcspark.engine.interface import Engine

__all__ = ["engine_of"]


def engine_of(spark: SparkSession) -> Engine:
    """What the session can do beside DataFrames.

    Every session has its driver in this process, so far. Another kind is told apart here, and nowhere else.
    """
    return Classic(spark)

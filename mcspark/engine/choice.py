"""Which implementation a session gets."""

from __future__ import annotations

from pyspark.sql import SparkSession

from mcspark.engine.interface import Engine

__all__ = ["engine_of"]


def engine_of(spark: SparkSession) -> Engine:
    """What the session can do beside DataFrames.

    Kinds of sessions are told apart here, and nowhere else.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        from mcspark.engine.connect.engine import Connect  # noqa: PLC0415  (grpc may not be installed)

        return Connect(spark)
    from mcspark.engine.classic.engine import Classic  # noqa: PLC0415  (py4j may not be)

    return Classic(spark)

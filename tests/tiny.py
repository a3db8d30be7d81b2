"""Spark set up for tables of a few dozen rows, where compiling a plan takes longer than running it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Full tiers run the same plans with all of these at Spark's own values: tests/spark, tests/submit.
TINY = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}


@contextlib.contextmanager
def tiny_tables(spark: SparkSession) -> Iterator[None]:
    """Plans are interpreted and have two partitions until the block ends."""
    before = {name: spark.conf.get(name) for name in TINY}
    try:
        for name, value in TINY.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))

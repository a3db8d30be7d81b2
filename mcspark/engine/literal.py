"""Paths taken as they are written: Spark and Hadoop take brackets, braces and stars for patterns."""

from __future__ import annotations

from pyspark.sql import DataFrameReader, SparkSession


def literal_reader(spark: SparkSession) -> DataFrameReader:
    """The reader of every table: ``a[1]`` is a folder of that name, and a file that cannot be read an error.

    Spark has no public switch against patterns. This option is the one that its own streams set, and unlike
    escapes it leaves the path alone for whoever else looks at it.
    """
    return (
        spark.read.option("__globPaths__", "false")
        .option("ignoreCorruptFiles", "false")
        .option("ignoreMissingFiles", "false")
    )

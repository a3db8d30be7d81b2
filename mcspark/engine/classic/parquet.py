"""Footers of Parquet files, by Spark's own reader of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from mcspark.engine.classic.jvm import java_class


class JavaSchema:
    """Schema of a file, or of one of its columns (see :class:`mcspark.engine.interface.ParquetSchema`)."""

    def __init__(self, spark: SparkSession, message: Any, text: str) -> None:
        self._spark = spark
        self._message = message
        self.text = text

    def columns(self) -> list[tuple[str, JavaSchema]]:
        message = java_class("org.apache.parquet.schema.MessageType")
        found = []
        for column in self._message.getFields():
            alone = java_class("java.util.ArrayList")()
            alone.add(column)
            one = message("one", alone)
            text = " ".join(str(column.toString()).split())
            found.append((str(column.getName()), JavaSchema(self._spark, one, text)))
        return found

    def struct(self) -> StructType:
        converter = java_class(
            "org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter"
        )
        found = converter(self._spark._jsparkSession.sessionState().conf()).convert(self._message)
        # Whether a writer promised non-null says nothing about the values.
        return StructType.fromJson(json.loads(found.asNullable().json()))


def parquet_schema(spark: SparkSession, path: str) -> JavaSchema:
    """The schema in the footer of a file."""
    with _opened(spark, path) as reader:
        schema = reader.getFooter().getFileMetaData().getSchema()
        return JavaSchema(spark, schema, str(schema.toString()))


def parquet_rows(spark: SparkSession, path: str) -> int:
    """The number of rows in the footer of a file."""
    with _opened(spark, path) as reader:
        return int(reader.getRecordCount())


@contextmanager
def _opened(spark: SparkSession, path: str) -> Iterator[Any]:
    place = java_class("org.apache.hadoop.fs.Path")(path)
    file = java_class("org.apache.parquet.hadoop.util.HadoopInputFile")
    configuration = spark._jsc.hadoopConfiguration()
    reader = java_class("org.apache.parquet.hadoop.ParquetFileReader").open(
        file.fromPath(place, configuration)
    )
    try:
        yield reader
    finally:
        reader.close()

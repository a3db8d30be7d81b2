"""Schemas of Parquet files, by Spark's own reader of them."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType


class JavaSchema:
    """Schema of a file, or of one of its columns (see :class:`mcspark.engine.interface.ParquetSchema`)."""

    def __init__(self, spark: SparkSession, message: Any, text: str) -> None:
        self._spark = spark
        self._message = message
        self.text = text

    def columns(self) -> list[tuple[str, JavaSchema]]:
        jvm: Any = self._spark._jvm
        found = []
        for column in self._message.getFields():
            alone = jvm.java.util.ArrayList()
            alone.add(column)
            one = jvm.org.apache.parquet.schema.MessageType("one", alone)
            text = " ".join(str(column.toString()).split())
            found.append((str(column.getName()), JavaSchema(self._spark, one, text)))
        return found

    def struct(self) -> StructType:
        jvm: Any = self._spark._jvm
        converter = jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter
        found = converter(self._spark._jsparkSession.sessionState().conf()).convert(self._message)
        # Whether a writer promised non-null says nothing about the values.
        return StructType.fromJson(json.loads(found.asNullable().json()))


def parquet_schema(spark: SparkSession, path: str) -> JavaSchema:
    """The schema in the footer of a file."""
    jvm: Any = spark._jvm
    parquet = jvm.org.apache.parquet.hadoop
    place = jvm.org.apache.hadoop.fs.Path(path)
    configuration = spark._jsc.hadoopConfiguration()
    reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(place, configuration))
    try:
        schema = reader.getFooter().getFileMetaData().getSchema()
        return JavaSchema(spark, schema, str(schema.toString()))
    finally:
        reader.close()

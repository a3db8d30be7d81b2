"""Schemas of Parquet files: footers by Arrow, types as the Spark behind the connection reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from mcspark.engine.connect.store import MountedStore
from mcspark.engine.errors import FileNotFoundInStoreError, StoreError
from mcspark.engine.literal import literal_reader


class MountedSchema:
    """Schema of a file, or of one of its columns (see :class:`mcspark.engine.interface.ParquetSchema`)."""

    def __init__(self, schema: pa.Schema, read: Callable[[], StructType]) -> None:
        self._schema = schema
        self._read = read
        self.text = ", ".join(f"{field.name} ({field.type})" for field in schema)

    @classmethod
    def of(cls, spark: SparkSession, path: str) -> MountedSchema:
        """The schema in the footer of a file; errors as of :func:`mounted_footer`."""
        schema = mounted_footer(path).schema.to_arrow_schema()
        return cls(schema, lambda: _nullable(literal_reader(spark).parquet(path).schema))

    def columns(self) -> list[tuple[str, MountedSchema]]:
        return [(field.name, _of_one(field)) for field in self._schema]

    def struct(self) -> StructType:
        return self._read()


def mounted_footer(path: str) -> pq.FileMetaData:
    """The footer of a file.

    Raises
    ------
    StoreError
        If it is not there, or not Parquet.
    """
    try:
        return pq.read_metadata(MountedStore(path).local_name(path))
    except FileNotFoundError as error:
        raise FileNotFoundInStoreError(f"{path}: no such file") from error
    except (OSError, pa.ArrowException) as error:
        raise StoreError(str(error)) from error


def _of_one(field: pa.Field) -> MountedSchema:
    """A column alone; Spark infers the types of whole files, so here it is what Arrow makes of it."""
    schema = pa.schema([field])

    def read() -> StructType:
        if "[ns" in str(field.type):
            raise StoreError(f"{field.type} is read by no Spark")
        return _nullable(from_arrow_schema(schema))

    return MountedSchema(schema, read)


def _nullable(schema: StructType) -> StructType:
    """Whether a writer promised non-null says nothing about the values."""

    def without_promises(plain: Any) -> Any:
        if isinstance(plain, dict):
            promises = {"nullable", "containsNull", "valueContainsNull"} & set(plain)
            return {k: without_promises(v) for k, v in plain.items()} | dict.fromkeys(promises, True)
        return [without_promises(v) for v in plain] if isinstance(plain, list) else plain

    return StructType.fromJson(without_promises(json.loads(schema.json())))

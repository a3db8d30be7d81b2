"""What a session offers that is spoken to by Spark Connect."""

from __future__ import annotations

import codecs
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mcspark.engine.connect.parquet import MountedSchema, mounted_footer
from mcspark.engine.connect.store import MountedStore
from mcspark.engine.errors import SPARK_ERRORS
from mcspark.engine.interface import Executor, R
from mcspark.errors import ConfigurationError

_MOST_SLICES = 2**16
_cores: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()


class Connect:
    """A session of Spark Connect (see :class:`mcspark.engine.interface.Engine`)."""

    is_remote = True

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def is_alive(self) -> bool:
        with suppress(*SPARK_ERRORS, OSError):
            return bool(self._spark.version)
        return False

    def store(self, path: str) -> MountedStore:
        return MountedStore(path)

    def cores(self) -> int:
        if self._spark not in _cores:  # how many slices Spark cuts what nobody has said anything about into
            slices = self._spark.range(_MOST_SLICES).select(F.spark_partition_id().alias("slice"))
            _cores[self._spark] = 1 + int(slices.agg(F.max("slice")).collect()[0][0])
        return _cores[self._spark]

    def executors(self) -> tuple[Executor, ...]:
        return (Executor("all", "", self.cores(), self.cores()),)

    @contextmanager
    def jobs_named(self, group: str, what: str, *, interrupts: bool = False) -> Iterator[None]:
        del what, interrupts  # Spark's pages show the tag, and an interrupted task is always told
        self._spark.addTag(group)
        try:
            yield
        finally:
            self._spark.removeTag(group)

    def cancel(self, group: str) -> None:
        with suppress(*SPARK_ERRORS, OSError):
            self._spark.interruptTag(group)

    def workers_are_the_drivers(self) -> bool:
        return False

    def on_partitions(self, function: Callable[[Iterable[int]], Iterable[R]], tasks: int) -> list[R]:
        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            places = [int(place) for batch in batches for place in batch["id"].to_pylist()]
            found = [pickle.dumps(value) for value in function(places)]
            yield pa.RecordBatch.from_arrays([pa.array(found, pa.binary())], ["found"])

        rows = self._spark.range(0, tasks, 1, tasks).mapInArrow(run, "found binary").collect()
        return [pickle.loads(row["found"]) for row in rows]

    def knows_encoding(self, name: str) -> bool:
        try:
            return bool(codecs.lookup(name))
        except LookupError:
            return False

    def parquet_schema(self, path: str) -> MountedSchema:
        return MountedSchema.of(self._spark, path)

    def parquet_rows(self, path: str) -> int:
        return int(mounted_footer(path).num_rows)

    def driver_processes(self) -> set[int]:
        return set()

    def heap(self) -> NoReturn:
        raise ConfigurationError(
            "over Spark Connect nobody can see how much memory the driver uses; run the benchmark with "
            "spark-submit"
        )

"""A private folder beside the output for what a run computes once and reads again."""

from __future__ import annotations

from types import TracebackType

from pyspark.sql import DataFrame, SparkSession

from mcspark.engine.literal import literal_reader
from mcspark.runtime.files.files import Files, beside, leaf, parent


class Workspace:
    """Keeps tables of one run on the output's file system; removed at its end, or by the next run.

    Unlike a cache it survives the loss of an executor, and it freezes the input: both passes of a run see
    the same rows. The caller holds the lease of the output.

    Parameters
    ----------
    spark : SparkSession
    place : str
        The output's leaf.
    run_id : str
    """

    def __init__(self, spark: SparkSession, place: str, run_id: str) -> None:
        self._spark = spark
        self._files = Files(spark, place)
        self._place = self._files.qualify(place)
        self._prefix = f".{leaf(self._place)}.work-"
        self._folder = beside(self._place, f"{self._prefix}{run_id}")

    def __enter__(self) -> Workspace:
        self._remove_leftovers()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.delete(self._folder)

    def keep(self, frame: DataFrame, name: str) -> DataFrame:
        """Write a table and read it back."""
        path = f"{self._folder}/{name}"
        frame.write.parquet(path)
        return literal_reader(self._spark).schema(frame.schema).parquet(path)

    def drop(self, name: str) -> None:
        """Remove a table that is not read any more."""
        self._files.delete(f"{self._folder}/{name}")

    def _remove_leftovers(self) -> None:
        for name in self._files.names(parent(self._place)):
            if name.startswith(self._prefix):
                self._files.delete(beside(self._place, name))

"""What a session offers whose JVM this process talks to."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark.sql import SparkSession

from mcspark.engine.classic.jvm import java_class
from mcspark.engine.classic.parquet import JavaSchema, parquet_rows, parquet_schema
from mcspark.engine.classic.store import HadoopStore, store_of
from mcspark.engine.classic.workers import are_the_drivers
from mcspark.engine.errors import ENGINE_ERRORS
from mcspark.engine.interface import Executor, R

_MANAGEMENT = "java.lang.management.ManagementFactory"
_NAMES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


class Classic:
    """A session with a JVM (see :class:`mcspark.engine.interface.Engine`)."""

    is_remote = False

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def is_alive(self) -> bool:
        try:
            context: Any = self._spark.sparkContext._jsc
            return context is not None and not context.sc().isStopped()
        except (*ENGINE_ERRORS, OSError):
            return False

    def store(self, path: str) -> HadoopStore:
        return store_of(self._spark, path)

    def cores(self) -> int:
        return max(int(self._spark.sparkContext.defaultParallelism), 1)

    def executors(self) -> tuple[Executor, ...]:
        context: Any = self._spark.sparkContext._jsc
        summaries = context.sc().statusStore().executorList(True)
        every = [summaries.apply(i) for i in range(summaries.size())]
        found = [Executor(e.id(), e.hostPort(), e.totalCores(), e.maxTasks()) for e in every]
        return tuple(sorted((e for e in found if e.slots > 0), key=lambda e: e.id))

    @contextlib.contextmanager
    def jobs_named(self, group: str, what: str, *, interrupts: bool = False) -> Iterator[None]:
        context = self._spark.sparkContext
        before = {name: context.getLocalProperty(name) for name in _NAMES}
        context.setJobGroup(group, what, interruptOnCancel=interrupts)
        try:
            yield
        finally:
            for name, value in before.items():
                context.setLocalProperty(name, value)  # type: ignore[arg-type]  # None removes it

    def cancel(self, group: str) -> None:
        with contextlib.suppress(*ENGINE_ERRORS, OSError):
            self._spark.sparkContext.cancelJobGroup(group)

    def workers_are_the_drivers(self) -> bool:
        return are_the_drivers(self._spark)

    def on_partitions(self, function: Callable[[Iterable[int]], Iterable[R]], tasks: int) -> list[R]:
        return self._spark.sparkContext.parallelize(range(tasks), tasks).mapPartitions(function).collect()

    def knows_encoding(self, name: str) -> bool:
        return bool(java_class("java.nio.charset.Charset").isSupported(name))

    def parquet_schema(self, path: str) -> JavaSchema:
        return parquet_schema(self._spark, path)

    def parquet_rows(self, path: str) -> int:
        return parquet_rows(self._spark, path)

    def driver_processes(self) -> set[int]:
        name = java_class(_MANAGEMENT).getRuntimeMXBean().getName()
        return {int(str(name).partition("@")[0])}

    def heap(self) -> JavaHeap:
        beans = java_class(_MANAGEMENT).getMemoryPoolMXBeans()
        limit = int(java_class("java.lang.Runtime").getRuntime().maxMemory())
        return JavaHeap([bean for bean in beans if bean.getType().name() == "HEAP"], limit)


class JavaHeap:
    """Memory of the JVM (see :class:`mcspark.engine.interface.Heap`)."""

    def __init__(self, pools: list[Any], limit: int) -> None:
        self._pools = pools
        self._limit = limit

    def reset(self) -> None:
        for pool in self._pools:
            pool.resetPeakUsage()

    def peak(self) -> int:
        # The pools peak at different times, so their sum may be more than the heap can hold.
        return min(sum(int(pool.getPeakUsage().getUsed()) for pool in self._pools), self._limit)

"""Wall clock, processor time and memory of everything that this process has started."""

from __future__ import annotations

import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import structlog
from pyspark.sql import SparkSession

from mcspark.engine.choice import engine_of

log = structlog.get_logger(__name__)

T = TypeVar("T")
_GIB = 2.0**30


@dataclass(frozen=True)
class Cost:
    """What one run of something took.

    Parameters
    ----------
    seconds : float
        Wall clock.
    cpu : float or None
        User and system time of the driver, the JVM and the Python workers; None where ``/proc`` is absent.
    """

    seconds: float
    cpu: float | None


class Clock:
    """Takes the time of named things, run again and again.

    Parameters
    ----------
    spark : SparkSession
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._roots = _roots(spark)
        self.costs: dict[str, list[Cost]] = {}

    def take(self, name: str, action: Callable[[], T]) -> T:
        """Run something, and note what it cost under ``name``."""
        with self.running(name):
            return action()

    @contextmanager
    def running(self, name: str) -> Iterator[None]:
        """The same for a block."""
        cpu, start = processor_seconds(self._roots), time.monotonic()
        yield
        seconds, after = time.monotonic() - start, processor_seconds(self._roots)
        spent = None if cpu is None or after is None else after - cpu
        self.note(name, Cost(seconds, spent))

    def note(self, name: str, cost: Cost) -> None:
        """Add a cost that was found elsewhere."""
        log.info("measured", what=name, seconds=round(cost.seconds, 2), cpu=cost.cpu and round(cost.cpu, 2))
        self.costs.setdefault(name, []).append(cost)

    def seconds(self, name: str) -> float:
        """Median wall clock."""
        return statistics.median(cost.seconds for cost in self.costs[name])

    def cpu(self, name: str) -> float | None:
        """Median processor time."""
        spent = [cost.cpu for cost in self.costs[name] if cost.cpu is not None]
        return statistics.median(spent) if spent else None

    def table(self) -> Mapping[str, Any]:
        """Medians and single runs of everything, rounded."""
        return {
            name: {
                "seconds": round(self.seconds(name), 3),
                "cpu_seconds": None if (cpu := self.cpu(name)) is None else round(cpu, 2),
                "runs": [round(cost.seconds, 3) for cost in costs],
            }
            for name, costs in self.costs.items()
        }


@dataclass
class Memory:
    """Peak memory, in GiB, of a run in which everything happened.

    Parameters
    ----------
    spark : SparkSession
    """

    spark: SparkSession

    def __post_init__(self) -> None:
        self._heap = engine_of(self.spark).heap()

    def reset(self) -> None:
        """Forget the peaks so far."""
        self._heap.reset()

    def heap(self) -> float:
        """Peak of the heap of the driver's JVM, garbage included; a local master's executor is in it."""
        return self._heap.peak() / _GIB

    def driver_python(self) -> float:
        """Peak resident memory of this process."""
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / _GIB

    def workers(self) -> float | None:
        """Peak resident memory of the largest Python worker that is alive."""
        mine = _roots(self.spark)
        peaks = [_peak_resident(pid) for pid in _tree(mine) - mine]
        found = [peak for peak in peaks if peak is not None]
        return max(found) / _GIB if found else None


def processor_seconds(roots: set[int]) -> float | None:
    """User and system time of these processes and their descendants, those that have ended included."""
    if not Path("/proc/self/stat").exists():
        return None
    ticks = 0
    for pid in _tree(roots):
        fields = _stat(pid)
        if fields is not None:
            # utime, stime, and the same of children that were waited for.
            ticks += sum(int(value) for value in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _tree(roots: set[int]) -> set[int]:
    """These processes and their descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(entry.name))
        if fields is not None:
            parents[int(entry.name)] = int(fields[1])
    found = set(roots)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _stat(pid: int) -> list[str] | None:
    """The fields of ``/proc/PID/stat`` from the third on; None if the process has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _peak_resident(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    peaks = [line for line in lines if line.startswith("VmHWM:")]
    return int(peaks[0].split()[1]) * 1024 if peaks else None


def _roots(spark: SparkSession) -> set[int]:
    """The processes that do the driver's work."""
    return {os.getpid(), *engine_of(spark).driver_processes()}

"""What mcspark asks of a Spark session beside DataFrames, and nothing of how it is done.

An engine is had by :func:`mcspark.engine.choice.engine_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pyspark.sql.types import StructType

R = TypeVar("R")


@dataclass(frozen=True)
class Executor:
    """One process that runs tasks; in local mode the driver itself.

    Attributes
    ----------
    id, host
        Spark's name of it, and `host:port`.
    cores, slots
        Its cores, and how many tasks it runs at once (cores / `spark.task.cpus`).
    """

    id: str
    host: str
    cores: int
    slots: int


class Store(Protocol):
    """A file system that the session reads from and writes to.

    What a method finds wrong is raised as one of :data:`mcspark.engine.errors.SPARK_ERRORS`, unless it says
    something else. Rules about files, such as writing beside and renaming, are above:
    :class:`mcspark.runtime.files.files.Files`.
    """

    @property
    def scheme(self) -> str:
        """Of its paths, such as ``file`` or ``s3a``."""

    def full_name(self, path: str) -> str:
        """The path with its scheme, and without a trailing slash."""

    def local_name(self, path: str) -> str:
        """The path without its scheme."""

    def parent(self, path: str) -> str | None:
        """The folder that holds the path; None at the root."""

    def exists(self, path: str) -> bool:
        """Whether a file or a folder is there."""

    def is_folder(self, path: str) -> bool:
        """Whether what is there is a folder."""

    def size(self, path: str) -> int:
        """Bytes of a file."""

    def modified(self, path: str) -> float:
        """When a file was last written, in seconds by the clock of the file system."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder, in no order."""

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        """The names in a folder, and whether each is a folder."""

    def stamps(self, folder: str) -> list[tuple[str, int, float]]:
        """Name, bytes, and time of writing in seconds, of each file in a folder."""

    def below(self, folder: str) -> list[str]:
        """Full names of all files below a folder."""

    def matching(self, folder: str, pattern: str) -> list[str]:
        """Full names of what matches a pattern with stars, such as ``*=*/x``, below a folder."""

    def make_folder(self, path: str) -> bool:
        """Make a folder and those above it, unless they are there; whether they are now."""

    def delete(self, path: str, *, whole: bool) -> bool:
        """Delete a file or an empty folder, or a ``whole`` folder; whether that was done."""

    def move(self, source: str, target: str) -> bool:
        """Rename to a free name; whether that was done."""

    def replace(self, source: str, target: str) -> None:
        """Rename a file over another one, in one step."""

    def read_text(self, path: str) -> str:
        """The text of a UTF-8 file."""

    def head(self, path: str, limit: int) -> bytes:
        """The first bytes of a file, decompressed if its name says so."""

    def write(self, path: str, content: bytes) -> None:
        """Write a file, over one that is there."""

    def copy_to_local(self, path: str, folder: str) -> None:
        """Copy a file or a whole folder into a folder of this machine."""


class ParquetSchema(Protocol):
    """The schema in the footer of a Parquet file."""

    @property
    def text(self) -> str:
        """In Parquet's own words; of a single column, on one line."""

    def columns(self) -> Sequence[tuple[str, ParquetSchema]]:
        """Each column by name, as a schema of its own."""

    def struct(self) -> StructType:
        """The types that Spark reads; an error if there is a column that it does not read."""


class Heap(Protocol):
    """Memory of the process that plans Spark's jobs."""

    def reset(self) -> None:
        """Forget the peak so far."""

    def peak(self) -> int:
        """Bytes in use at the peak, garbage included."""


class Engine(Protocol):
    """A running session, as far as DataFrames do not show it."""

    @property
    def is_remote(self) -> bool:
        """Whether the driver is another process, whose JVM cannot be spoken to."""

    def is_alive(self) -> bool:
        """Whether the session can still be asked for anything."""

    def store(self, path: str) -> Store:
        """The file system that holds a path; an error where none is known for its scheme."""

    def cores(self) -> int:
        """How many tasks a stage is given that nobody has said anything about: at least 1."""

    def executors(self) -> tuple[Executor, ...]:
        """The live executors that run tasks, by id; of a remote session all of them as one."""

    def jobs_named(self, group: str, what: str, *, interrupts: bool = False) -> AbstractContextManager[None]:
        """Name the jobs that this thread starts within the block; names around the block hold again after it.

        Parameters
        ----------
        group : str
            By which :meth:`cancel` knows them.
        what : str
            What Spark's pages show.
        interrupts : bool
            Whether cancelling interrupts the threads of their tasks.
        """

    def cancel(self, group: str) -> None:
        """Cancel the jobs of this group that run now; nothing if Spark is gone."""

    def workers_are_the_drivers(self) -> bool:
        """Whether tasks run on the driver, and by the Python of this process, with the same libraries."""

    def on_partitions(self, function: Callable[[Iterable[int]], Iterable[R]], tasks: int) -> list[R]:
        """What a function returns, run by so many tasks at once in plain Python, without Arrow or pandas."""

    def knows_encoding(self, name: str) -> bool:
        """Whether Spark's readers of text know an encoding."""

    def parquet_schema(self, path: str) -> ParquetSchema:
        """The schema of a Parquet file, read from its footer."""

    def parquet_rows(self, path: str) -> int:
        """How many rows a Parquet file has, by its footer."""

    def driver_processes(self) -> set[int]:
        """Ids of processes of this machine, beside this one, that do the driver's work."""

    def heap(self) -> Heap:
        """Memory of the process that plans the jobs."""

"""Work of many small pieces in processes of their own on the driver, a few pieces ahead of what is taken."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from mcspark.runtime.tasks.executors import driver_cores

Name = TypeVar("Name")
Result = TypeVar("Result")

_WORTH = 8
"""Pieces for which a process is worth its start."""

_AHEAD = 4


class SideBySide:
    """Runs pieces of work; see :func:`side_by_side`."""

    def __init__(self, processes: ProcessPoolExecutor | None, count: int) -> None:
        self._processes, self._count = processes, count

    def map(
        self, work: Callable[..., Result], pieces: Iterable[tuple[Name, tuple[Any, ...]]]
    ) -> Iterator[tuple[Name, Result]]:
        """The results of pieces, each a name and arguments, in their order; few are in memory at a time."""
        if self._processes is None:
            yield from ((name, work(*piece)) for name, piece in pieces)
            return
        running: deque[tuple[Name, Future[Result]]] = deque()
        for name, piece in pieces:
            running.append((name, self._processes.submit(work, *piece)))
            if len(running) > _AHEAD * self._count:
                yield _ended(*running.popleft())
        while running:
            yield _ended(*running.popleft())


def _ended(name: Name, result: Future[Result]) -> tuple[Name, Result]:
    return name, result.result()


@contextmanager
def side_by_side(pieces: int) -> Iterator[SideBySide]:
    """Processes for about so many pieces, no more than there are cores; for a few pieces this process alone.

    What has not begun when the block is left is given up.
    """
    count = min(driver_cores(), pieces // _WORTH)
    if count < 2:
        yield SideBySide(None, 1)
        return
    # A forked copy of a process with a JVM behind it, or with threads, is not safe; a fresh one is.
    processes: Any = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"))
    try:
        yield SideBySide(processes, count)
    finally:
        processes.shutdown(cancel_futures=True)

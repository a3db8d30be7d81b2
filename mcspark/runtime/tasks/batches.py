"""Arrow batches put together: what is laid out once for many rows costs little a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Batch = TypeVar("Batch")


def gathered(batches: Iterable[Batch], rows: int, count: Callable[[Batch], int]) -> Iterator[list[Batch]]:
    """Batches in order, as many at a time as it takes to have so many rows.

    Parameters
    ----------
    batches : iterable
    rows : int
        Fewest rows at a time, but for the last.
    count : callable
        Rows of a batch.
    """
    waiting: list[Batch] = []
    total = 0
    for batch in batches:
        waiting.append(batch)
        total += count(batch)
        if total >= rows:
            yield waiting
            waiting, total = [], 0
    if total:
        yield waiting

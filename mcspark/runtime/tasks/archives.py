"""Python workers and the archives on their path.

Before each task a worker lets Python forget what it knows of the files on its path, and Python then reads the
list of contents of every archive there again: Spark's own ``pyspark.zip`` and each jar that came by
``--packages``. That takes a quarter of a second or more a task, often longer than the task.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any
from zipimport import zipimporter

Batches = Callable[[Iterable[Any]], Iterator[Any]]


def quick_to_follow(task: Batches) -> Batches:
    """The function of a task, after which the next task of the same worker starts at once."""

    @wraps(task)
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        yield from task(batches)
        let_go_of_archives()

    return run


def let_go_of_archives() -> None:
    """Drop the finders of archives: an import makes them anew, from lists of contents that Python keeps."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]

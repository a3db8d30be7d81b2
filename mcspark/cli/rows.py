"""Rows of a Parquet file, or of a folder of them, on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from mcspark.cli.files import local_place
from mcspark.errors import ContractError, McsparkError

ROWS_AT_ONCE = 2**18

_ELSEWHERE = "://"


@contextmanager
def about(path: str) -> Iterator[None]:
    """Errors of what is read and scored in here are told with the path."""
    try:
        yield
    except McsparkError as error:
        raise type(error)(f"{path or '(no name)'}: {error}") from error


def rows_at(path: str) -> Any:
    """The dataset at a path; folders named ``column=value`` are a column, as they are in Spark.

    Raises
    ------
    ContractError
        If nothing is there, it is no Parquet, or its files have not all the same columns.
    """
    place = local_place(path)
    try:
        if _ELSEWHERE in path and not path.startswith("file:"):
            rows = ds.dataset(path, format="parquet", partitioning="hive")
        else:
            rows = _local(place)
        _check_columns(rows)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _unreadable(error) from error
    return rows


def _local(place: Path) -> Any:
    if not place.exists() or place == Path():
        raise ContractError("nothing is there; name a Parquet file or a folder of them")
    partitions = "hive" if place.is_dir() else None
    rows = ds.dataset(str(place.absolute()), format="parquet", partitioning=partitions)
    if not rows.files:
        raise ContractError("no file is in this folder; name another")
    return rows


def _check_columns(rows: Any) -> None:
    """A column that one file lacks would be taken for missing values, silently."""
    first: tuple[set[str], str] | None = None
    for fragment in rows.get_fragments():
        names = set(fragment.physical_schema.names)
        if first is None:
            first = names, fragment.path
        elif names != first[0]:
            only = sorted(names ^ first[0])
            raise ContractError(
                f"{Path(first[1]).name} and {Path(fragment.path).name} differ by the column(s) "
                f"{', '.join(only[:10])}; write all files with the same columns, or name one file"
            )


def batches_of(rows: Any, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Batches with rows.

    Raises
    ------
    ContractError
        If a file cannot be read to its end.
    """
    try:
        for batch in rows.to_batches(columns=columns, batch_size=ROWS_AT_ONCE):
            if len(batch):
                yield batch
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> ContractError:
    return ContractError(f"cannot be read as Parquet ({error})")

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

_AHEAD = {"batch_readahead": 2, "fragment_readahead": 1}
"""As much as keeps a core busy; by default Arrow holds sixteen batches of four files."""


_ELSEWHERE = "://"
_TEXTS = ("string", "large_string", "string_view")


@contextmanager
def about(path: str) -> Iterator[None]:
    """Errors of what is read and scored in here are reported with the path."""
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
    """A column that one file lacks would be missing values, and a text that is cast a number, silently."""
    first: tuple[dict[str, str], str] | None = None
    for fragment in rows.get_fragments():
        kinds = {field.name: _kind(field.type) for field in fragment.physical_schema}
        if first is None:
            first = kinds, fragment.path
            continue
        known = first[0]
        # A column without any value has no type, and may be the other's.
        only = kinds.keys() - known
        only |= {name for name in known if kinds.get(name) not in (known[name], "null")}
        if only:
            raise ContractError(
                f"{Path(first[1]).name} and {Path(fragment.path).name} differ in the column(s) "
                f"{', '.join(sorted(only)[:10])}; give all files the same columns and types, or name one file"
            )


def _kind(found: Any) -> str:
    """What values of a type mean: numbers of any width are numbers."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_decimal(found):
        return "number"
    return "text" if str(found) in _TEXTS else str(found)


def batches_of(rows: Any, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Batches with rows.

    Raises
    ------
    ContractError
        If a file cannot be read to its end.
    """
    try:
        for batch in rows.to_batches(columns=columns, batch_size=ROWS_AT_ONCE, **_AHEAD):
            if len(batch):
                yield batch
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> ContractError:
    return ContractError(f"cannot be read as Parquet ({error})")

"""Files of one table that disagree about its columns, found before any row is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import structlog
from pyspark.sql import SparkSession

from mcspark.data.formats.footers import Footer, footers_of
from mcspark.errors import ContractError

log = structlog.get_logger(__name__)

MAX_FOOTERS = 1_000
"""Of more files, this many evenly spaced ones are compared: about eight seconds' worth on two cores."""


def refuse_parquet_drift(
    spark: SparkSession, name: str, files: Sequence[str], columns: Sequence[str] | None = None
) -> Footer:
    """Compare the schemas of the Parquet files; returns that of the first.

    Spark takes the schema of one file and reads a column that another file lacks as null; this makes it an
    error. Compared are Spark's types, so that files of several writers agree when Spark reads them alike.

    Parameters
    ----------
    spark : SparkSession
    name : str
        Of the table, for messages.
    files : sequence of str
        Their paths, at least one.
    columns : sequence of str, optional
        Refuse for these columns alone.

    Raises
    ------
    ContractError
        If two files differ, with the difference; a file is not Parquet; or Spark cannot read a column.
    """
    compared = _evenly(files, MAX_FOOTERS)
    if len(compared) < len(files):
        log.info(
            "schemas compared on a part of the files", table=name, files=len(files), compared=len(compared)
        )
    footers = footers_of(spark, name, compared)
    for path, footer in zip(compared, footers, strict=True):
        unreadable = {c: d for c, d in footer.unreadable.items() if columns is None or c in columns}
        if unreadable:
            raise ContractError(
                f"{name}: {len(unreadable)} column(s) of {_short(path, name)} cannot be read: "
                f"{'; '.join(unreadable.values())}"
            )
        difference = _difference(footers[0].types, footer.types)
        refused = {c: d for c, d in difference.items() if columns is None or c in columns}
        if refused:
            lines = "; ".join(refused.values())
            raise ContractError(
                f"{name}: its files disagree about {len(refused)} column(s): {lines} "
                f"(first {_short(compared[0], name)}, then {_short(path, name)}); "
                "rewrite the files with one schema"
            )
        if difference:
            log.info("unused columns differ between files", table=name, columns=sorted(difference))
    if footers[0].unreadable:
        log.info("unused columns that Spark cannot read", table=name, columns=sorted(footers[0].unreadable))
    return footers[0]


def _evenly(files: Sequence[str], most: int) -> list[str]:
    if len(files) <= most:
        return list(files)
    return [files[i * (len(files) - 1) // (most - 1)] for i in range(most)]


def _difference(first: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for column in first:
        if column not in other:
            found[column] = f"- {column} {first[column]}"
        elif first[column] != other[column]:
            found[column] = f"~ {column} {first[column]} -> {other[column]}"
    return found | {column: f"+ {column} {other[column]}" for column in other if column not in first}


def _short(path: str, name: str) -> str:
    """The part of the path below the table."""
    root = name.rstrip("/") + "/"
    return path[len(root) :] if path.startswith(root) else path

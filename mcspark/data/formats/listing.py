"""The files of a table by path: another format, and files that would be passed over, are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from mcspark.data.formats.layout import Layout, is_elsewhere, is_machinery, layout_of
from mcspark.errors import ContractError
from mcspark.runtime.files.walk import Entries, walk

Lake = Literal["delta", "iceberg", "hudi"]
"""Formats of which the newest files alone are not the table."""


def list_table(
    shown: str, folder: str, entries: Entries, table_format: str, partition: Mapping[str, str] | None = None
) -> Layout:
    """The files of a folder, limited to one partition.

    Parameters
    ----------
    shown : str
        The table, for messages.
    folder : str
    entries : callable
        Lists a folder.
    table_format : {'parquet', 'csv'}
    partition : mapping of str to str, optional
        Folders of other partitions are not looked into.

    Raises
    ------
    ContractError
        If it is a table of another format, or files of it would not be read.
    """
    refuse_lake(shown, folder, entries, table_format)
    wanted = partition or {}
    names = walk(folder, entries, lambda name: is_machinery(name) or is_elsewhere(name, wanted))
    return layout_of(shown, table_format, names)


def refuse_lake(shown: str, folder: str, entries: Entries, table_format: str) -> None:
    """Refuse to read the files of a Delta, Iceberg or Hudi table one by one: deleted rows would be back.

    Raises
    ------
    ContractError
        With the right format; also if the folder is a part of such a table.
    """
    place = folder.rstrip("/")
    while not (kind := lake_of(place, entries)):
        above, _, name = place.rpartition("/")
        if not above or ("=" not in name and name != "data"):
            return
        place = above
    part = "" if place == folder.rstrip("/") else f"in {place}, "
    mend = (
        "this program does not read that format: export the table as Parquet"
        if kind == "hudi"
        else f"write format: {kind}" + (f", path: {place}, and the partition apart" if part else "")
    )
    raise ContractError(
        f"{shown}: {part}a table of format {kind}, of which format: {table_format} would also read rows that "
        f"have been deleted or replaced; {mend}"
    )


def lake_of(folder: str, entries: Entries) -> Lake | None:
    """``delta``, ``iceberg`` or ``hudi`` if the folder is such a table."""
    folders = {name for name, is_folder in entries(folder) if is_folder}
    if "_delta_log" in folders:
        return "delta"
    if ".hoodie" in folders:
        return "hudi"
    if "metadata" in folders and any(n.endswith(".metadata.json") for n, _ in entries(f"{folder}/metadata")):
        return "iceberg"
    return None

"""Writes tables aside, then renames them into place: an old output stands until the new one is whole."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from hashlib import sha256

from pyspark.sql import DataFrame, SparkSession

from mcspark.errors import ConfigurationError
from mcspark.runtime.files.files import Files
from mcspark.runtime.process.processes import Process, this_process


def publish(spark: SparkSession, directory: str, tables: Mapping[str, DataFrame]) -> dict[str, str]:
    """Write each table as Parquet to ``directory/NAME``, all of them or none.

    Other things in ``directory`` are left alone. A table that is there already is replaced by two renames
    after every new table is written; if one of them fails the old tables are put back.

    Returns
    -------
    dict of str to str
        Path of each table.

    Raises
    ------
    ConfigurationError
        The directory cannot be written to.
    """
    directory = directory.rstrip("/")
    targets = {name: f"{directory}/{name}" for name in tables}
    aside = f"{directory}/{_own()}{uuid.uuid4().hex}"
    files = Files(spark, directory)
    try:
        _mend(files, directory)
        _make(files, aside)
        for name, frame in tables.items():
            frame.write.parquet(f"{aside}/new/{name}")
        _swap(files, aside, targets)
    finally:
        files.delete(aside)
    return targets


def _own() -> str:
    """What the names of this process's staging folders begin with."""
    process = this_process()
    return f"{_ours(process)}{process.pid}-{process.started}-"


def _ours(process: Process) -> str:
    """What the names of staging folders begin with whose processes is known here."""
    return f"_staging-{sha256(process.table.encode()).hexdigest()[:12]}-"


def _mend(files: Files, directory: str) -> None:
    """Put back what a process of this host that was killed has moved aside, and remove what it had staged."""
    here = this_process()
    for name in files.names(directory):
        match = re.fullmatch(rf"{_ours(here)}(\d+)-(\d+)-[0-9a-f]+", name)
        if match is None or not Process("", here.table, int(match[1]), int(match[2])).is_gone():
            continue
        for table in files.names(f"{directory}/{name}/old"):
            files.delete(f"{directory}/{table}")
            files.move(f"{directory}/{name}/old/{table}", f"{directory}/{table}")
        files.delete(f"{directory}/{name}")


def _swap(files: Files, aside: str, targets: Mapping[str, str]) -> None:
    _make(files, f"{aside}/old")
    moved: list[tuple[str, str]] = []
    try:
        for name, target in targets.items():
            if files.exists(target):
                files.move(target, f"{aside}/old/{name}")
                moved.append((f"{aside}/old/{name}", target))
        for name, target in targets.items():
            files.move(f"{aside}/new/{name}", target)
            moved.append((target, f"{aside}/new/{name}"))
    except Exception:
        for source, back in reversed(moved):
            files.move(source, back)
        raise


def _make(files: Files, path: str) -> None:
    try:
        files.make_folder(path)
    except ConfigurationError as error:
        raise ConfigurationError(f"cannot create {path}: choose an --output that can be written") from error

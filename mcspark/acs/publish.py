"""Writes tables aside, then renames them into place: an old output stands until the new one is whole."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from mcspark.errors import ConfigurationError
from mcspark.runtime.processes import Process, this_process


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
    files = _Files(spark, directory)
    try:
        _mend(files, directory)
        files.make(aside)
        for name, frame in tables.items():
            frame.write.parquet(f"{aside}/new/{name}")
        _swap(files, aside, targets)
    finally:
        files.remove(aside)
    return targets


def _own() -> str:
    """What the names of this process's staging folders begin with."""
    process = this_process()
    return f"{_ours(process)}{process.pid}-{process.started}-"


def _ours(process: Process) -> str:
    """What the names of staging folders begin with whose processes can be told from here."""
    return f"_staging-{sha256(process.table.encode()).hexdigest()[:12]}-"


def _mend(files: _Files, directory: str) -> None:
    """Put back what a process of this host that was killed has moved aside, and remove what it had staged."""
    here = this_process()
    for name in files.names(directory):
        match = re.fullmatch(rf"{_ours(here)}(\d+)-(\d+)-[0-9a-f]+", name)
        if match is None or not Process("", here.table, int(match[1]), int(match[2])).is_gone():
            continue
        for table in files.names(f"{directory}/{name}/old"):
            files.remove(f"{directory}/{table}")
            files.rename(f"{directory}/{name}/old/{table}", f"{directory}/{table}")
        files.remove(f"{directory}/{name}")


def _swap(files: _Files, aside: str, targets: Mapping[str, str]) -> None:
    files.make(f"{aside}/old")
    moved: list[tuple[str, str]] = []
    try:
        for name, target in targets.items():
            if files.exists(target):
                files.rename(target, f"{aside}/old/{name}")
                moved.append((f"{aside}/old/{name}", target))
        for name, target in targets.items():
            files.rename(f"{aside}/new/{name}", target)
            moved.append((target, f"{aside}/new/{name}"))
    except Exception:
        for source, back in reversed(moved):
            files.rename(source, back)
        raise


class _Files:
    """The file system that holds a path, whichever it is."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        self._system = self._path(path).getFileSystem(hadoop)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def exists(self, path: str) -> bool:
        return bool(self._system.exists(self._path(path)))

    def names(self, path: str) -> list[str]:
        where = self._path(path)
        found = self._system.listStatus(where) if self._system.exists(where) else []
        return [str(status.getPath().getName()) for status in found]

    def make(self, path: str) -> None:
        try:
            made = self._system.mkdirs(self._path(path))
        except Exception as error:  # py4j wraps whatever the file system threw
            raise ConfigurationError(
                f"cannot create {path}: choose an --output that can be written"
            ) from error
        if not made:
            raise ConfigurationError(f"cannot create {path}: choose an --output that can be written")

    def rename(self, source: str, target: str) -> None:
        if not self._system.rename(self._path(source), self._path(target)):
            raise OSError(f"could not rename {source} to {target}")

    def remove(self, path: str) -> None:
        self._system.delete(self._path(path), True)

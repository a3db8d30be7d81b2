"""Folders and small text files on any file system that Spark can reach (file, hdfs, s3a, …), by one path."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from mcspark.engine.choice import engine_of
from mcspark.engine.errors import SPARK_ERRORS
from mcspark.errors import ConfigurationError
from mcspark.runtime.files.walk import local_entries
from mcspark.runtime.process.causes import java_reason

__all__ = ["Files", "beside", "java_reason", "leaf", "parent"]

MAX_TEXT = 64 * 1024 * 1024
"""No text file that a job reads back is larger, in bytes."""


OBJECT_STORES = ("s3a", "s3", "s3n", "gs", "oss", "cosn", "wasb", "wasbs")
"""Schemes of stores that copy every object to rename a folder, and show readers half of it meanwhile."""

_ROOT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?(//[^/]*)?")


class Files:
    """The file system that holds ``path``.

    Parameters
    ----------
    spark : SparkSession
    path : str
        Any path on the file system; local when it names no scheme and the cluster has no other default.

    Raises
    ------
    ConfigurationError
        If no file system is known for the scheme of the path.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        try:
            self._store = engine_of(spark).store(path)
        except SPARK_ERRORS as error:
            raise ConfigurationError(
                f"{path}: no file system for this path ({java_reason(error)})"
            ) from error
        self.is_local = self._store.scheme == "file"
        self.renames = self._store.scheme not in OBJECT_STORES

    def qualify(self, path: str) -> str:
        """The full name of the path, with scheme and without a trailing slash.

        Links of a local path are followed: what lies beside the name lies beside the folder itself, and two
        ways to one folder have one name.
        """
        if self.is_local:
            return f"file:{os.path.realpath(self.local_name(path))}"
        return self._store.full_name(path)

    def local_name(self, path: str) -> str:
        """The name of a local path for the operating system."""
        return self._store.local_name(path)

    def exists(self, path: str) -> bool:
        """Whether anything is there."""
        return self._store.exists(path)

    def is_folder(self, path: str) -> bool:
        """Whether a folder is there."""
        return self._store.exists(path) and self._store.is_folder(path)

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        """The names in a folder, and whether each is a folder."""
        if self.is_local:
            return local_entries(self.local_name(folder))
        return self._store.entries(folder)

    def stamps(self, folder: str) -> list[tuple[str, int, float]]:
        """Sorted name, bytes, and time of writing of each file in a folder."""
        if self.is_local:
            with os.scandir(self.local_name(folder)) as found:
                files = [(entry.name, entry.stat()) for entry in found if entry.is_file()]
            return sorted((name, status.st_size, status.st_mtime) for name, status in files)
        return sorted(self._store.stamps(folder))

    def modified(self, path: str) -> float | None:
        """When the file was last written, in seconds by the clock of the file system; None without one."""
        try:
            return self._store.modified(path)
        except SPARK_ERRORS:
            return None

    def names(self, path: str) -> list[str]:
        """Sorted names in the folder; none if there is no such folder."""
        try:
            return sorted(self._store.names(path))
        except SPARK_ERRORS as error:
            if "FileNotFound" in java_reason(error):
                return []
            raise

    def below(self, path: str) -> list[str]:
        """Names of all files below the folder, relative to it; of links, the links themselves."""
        if self.is_local:
            top = Path(self.local_name(path))
            return [
                str((Path(folder) / name).relative_to(top))
                for folder, folders, names in os.walk(top)
                for name in [*names, *(inner for inner in folders if (Path(folder) / inner).is_symlink())]
            ]
        root = self._store.full_name(path)
        return [name[len(root) :].lstrip("/") for name in self._store.below(path)]

    def matching(self, folder: str, pattern: str) -> list[str]:
        """Sorted full names of what matches a pattern below a folder, such as ``*=*/x``."""
        return sorted(self._store.matching(folder, pattern))

    def make_folder(self, path: str) -> None:
        """Make the folder and its parents, unless there.

        Raises
        ------
        ConfigurationError
            If it cannot be made.
        """
        try:
            made = self._store.make_folder(path)
        except SPARK_ERRORS as error:
            raise ConfigurationError(f"{path}: cannot make this folder ({java_reason(error)})") from error
        if not made:
            raise ConfigurationError(f"{path}: cannot make this folder; check who may write there")

    def missing_above(self, path: str) -> list[str]:
        """The folders above the path that are not there, innermost first."""
        missing = []
        where = self._store.parent(path)
        while where is not None and not self._store.exists(where):
            missing.append(where)
            where = self._store.parent(where)
        return missing

    def delete_empty(self, folders: Sequence[str]) -> None:
        """Delete these folders, innermost first, up to the first in which anything is."""
        for folder in folders:
            try:
                if self.names(folder) or not self._store.delete(folder, whole=False):
                    return
            except SPARK_ERRORS:  # somebody has just put something there
                return

    def delete(self, path: str) -> None:
        """Delete the file or the whole folder, if there."""
        self._store.delete(path, whole=True)

    def move(self, source: str, target: str) -> None:
        """Rename to a name that is free, in one step or not at all.

        Raises
        ------
        OSError
            If the target exists, or the file system refuses.
        """
        if self.exists(target):
            raise FileExistsError(f"{target}: exists, so {source} was not moved there")
        if self.is_local:  # Hadoop's local file system copies and deletes what it cannot rename
            try:
                Path(self.local_name(source)).rename(self.local_name(target))
            except OSError as error:
                what = f"{source}: cannot be moved to {target} ({error.strerror})"
                raise OSError(error.errno, what) from error
            return
        try:
            moved = self._store.move(source, target)
        except SPARK_ERRORS as error:
            raise OSError(f"{source}: cannot be moved to {target} ({java_reason(error)})") from error
        if not moved:
            raise OSError(f"{source}: cannot be moved to {target}")

    def read_text(self, path: str, limit: int = MAX_TEXT) -> str:
        """The text of a UTF-8 file.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If it is larger than ``limit`` bytes.
        """
        try:
            size = self._store.size(path)
            if size > limit:
                raise ValueError(f"{path}: {size} bytes, more than the {limit} that such a file may have")
            return self._store.read_text(path)
        except SPARK_ERRORS as error:
            if "FileNotFound" in java_reason(error):
                raise FileNotFoundError(f"{path}: no such file") from error
            raise OSError(f"{path}: cannot be read ({java_reason(error)})") from error

    def copy_to_local(self, path: str, folder: str) -> None:
        """Copy a file or a whole folder into a folder of this machine."""
        self._store.copy_to_local(path, folder)

    def head_bytes(self, path: str, limit: int) -> bytes:
        """The first bytes of a file, decompressed if its name says so."""
        return self._store.head(path, limit)

    def write_text(self, path: str, text: str) -> None:
        """Write a UTF-8 file beside its place, then put it there in one step.

        Raises
        ------
        ConfigurationError
            If it cannot be written; what was there stands, and nothing is left beside it.
        """
        content = text.encode("utf-8")
        if not self.renames:  # an object is there as a whole when it is closed, or not at all
            self.write_bytes(path, content)
            return
        temporary = beside(path, f".{leaf(path)}.writing-{os.getpid()}")
        try:
            self.write_bytes(temporary, content)
            self.replace(temporary, path)
        except ConfigurationError as error:
            with suppress(*SPARK_ERRORS):
                self.delete(temporary)
            raise ConfigurationError(str(error).replace(temporary, path)) from error

    def write_bytes(self, path: str, content: bytes) -> None:
        """Write a file where it goes, as a part of what nobody reads yet.

        Raises
        ------
        ConfigurationError
            If it cannot be written.
        """
        self.make_folder(parent(path))
        try:
            self._store.write(path, content)
        except SPARK_ERRORS as error:
            raise ConfigurationError(f"{path}: cannot be written ({java_reason(error)})") from error

    def replace(self, source: str, target: str) -> None:
        """Rename a file over another one, in one step.

        Raises
        ------
        ConfigurationError
            If the file system refuses.
        """
        try:
            if self.is_local:
                Path(self.local_name(source)).replace(self.local_name(target))
            else:
                self._store.replace(source, target)
        except OSError as error:
            raise ConfigurationError(f"{target}: cannot be written ({error.strerror})") from error
        except SPARK_ERRORS as error:
            raise ConfigurationError(f"{target}: cannot be written ({java_reason(error)})") from error


def parent(path: str) -> str:
    """The folder that holds the path.

    Raises
    ------
    ConfigurationError
        If the path is the root of its file system.
    """
    root = _ROOT.match(path)
    below = path[root.end() if root else 0 :].rstrip("/")
    if not below:
        raise ConfigurationError(f"{path}: the root of a file system; name a folder below it")
    head = below.rpartition("/")[0] or ("/" if below.startswith("/") else ".")
    return f"{root.group() if root else ''}{head}"


def leaf(path: str) -> str:
    """The last name in the path."""
    return path.rstrip("/").rpartition("/")[2]


def beside(path: str, name: str) -> str:
    """The sibling ``name`` of the path."""
    return f"{parent(path).rstrip('/')}/{name}"

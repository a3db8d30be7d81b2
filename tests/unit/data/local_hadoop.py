"""Hadoop's file system over the local disk without a JVM: what ``runtime.files`` calls of it, and a hook.

Publications, leases and journals run on it as they are, hundreds of times a second. ``Disk(rename=False)`` is
an object store: its scheme is one of those whose folders cannot be renamed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from py4j.protocol import Py4JJavaError
from pyspark.sql.types import StructType


def java_error(kind: str, message: str) -> Py4JJavaError:
    """What py4j raises for a Java exception of this class."""
    exception = SimpleNamespace(
        _target_id="o1",
        _gateway_client=None,
        getClass=lambda: SimpleNamespace(getSimpleName=lambda: kind),
        getMessage=lambda: message,
    )
    return Py4JJavaError(kind, exception)


class HadoopPath:
    def __init__(self, text: str, scheme: str) -> None:
        self.text = text.split(":", 1)[1] if text.startswith(f"{scheme}:") else text
        self.text = "/" + self.text.strip("/")
        self._scheme = scheme
        self._given = urlsplit(text)

    def __str__(self) -> str:
        return f"{self._scheme}:{self.text}"

    toString = __str__

    def toUri(self) -> HadoopPath:
        return self

    def getScheme(self) -> str | None:
        return self._given.scheme or None

    def getAuthority(self) -> str | None:
        return self._given.netloc or None

    def getName(self) -> str:
        return self.text.rpartition("/")[2]

    def getParent(self) -> HadoopPath | None:
        head = self.text.rpartition("/")[0]
        return HadoopPath(head or "/", self._scheme) if self.text != "/" else None

    def getFileSystem(self, conf: Any) -> Any:
        return conf


class Disk:
    """The file system.

    Parameters
    ----------
    rename : bool
    """

    def __init__(self, rename: bool = True) -> None:
        self.scheme = "file" if rename else "s3a"
        self.hook: Callable[[str, str], None] = lambda operation, path: None
        self.clock = 0.0

    def getScheme(self) -> str:
        return self.scheme

    getUri = getRawFileSystem = lambda self: self

    def makeQualified(self, path: HadoopPath) -> HadoopPath:
        return path

    def exists(self, path: HadoopPath) -> bool:
        self.hook("exists", path.text)
        return os.path.exists(path.text)

    def getFileStatus(self, path: HadoopPath) -> Any:
        self.hook("status", path.text)
        try:
            found = os.stat(path.text)
        except (FileNotFoundError, NotADirectoryError):
            raise java_error("FileNotFoundException", f"{path.text} does not exist") from None
        return SimpleNamespace(
            getLen=lambda: found.st_size,
            getModificationTime=lambda: int(found.st_mtime * 1000),
            isDirectory=lambda: os.path.isdir(path.text),
            getPath=lambda: path,
        )

    def listStatus(self, path: HadoopPath) -> Any:
        self.hook("list", path.text)
        try:
            names = os.listdir(path.text)
        except (FileNotFoundError, NotADirectoryError):
            raise java_error("FileNotFoundException", f"{path.text} does not exist") from None
        return [
            SimpleNamespace(getPath=lambda n=name: HadoopPath(f"{path.text}/{n}", self.scheme))
            for name in names
        ]

    def mkdirs(self, path: HadoopPath) -> bool:
        self.hook("mkdirs", path.text)
        try:
            os.makedirs(path.text, exist_ok=True)
        except OSError:
            return False
        return True

    def delete(self, path: HadoopPath, recursive: bool) -> bool:
        self.hook("delete", path.text)
        if os.path.isdir(path.text):
            if recursive:
                shutil.rmtree(path.text)
                return True
            try:
                os.rmdir(path.text)
            except OSError as error:
                raise java_error("IOException", str(error)) from error
            return True
        try:
            os.unlink(path.text)
        except OSError:
            return False
        return True

    def rename(self, source: HadoopPath, target: HadoopPath) -> bool:
        self.hook("rename", f"{source.text} {target.text}")
        assert self.scheme == "file" or not os.path.isdir(source.text), "an object store renames no folder"
        try:
            os.rename(source.text, target.text)
        except OSError:
            return False
        return True

    def create(self, path: HadoopPath, overwrite: bool) -> Any:
        self.hook("create", path.text)
        os.makedirs(os.path.dirname(path.text), exist_ok=True)
        parts: list[bytes] = []

        def close() -> None:
            self.hook("write", path.text)
            try:
                Path(path.text).write_bytes(b"".join(parts))
            except OSError as error:
                raise java_error("IOException", str(error)) from error

        if self.scheme == "file":
            Path(path.text).touch()
        return SimpleNamespace(write=parts.append, close=close)

    def open(self, path: HadoopPath) -> Any:
        self.hook("open", path.text)
        try:
            text = Path(path.text).read_text(errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            raise java_error("FileNotFoundException", f"{path.text} does not exist") from None
        except OSError as error:
            raise java_error("IOException", str(error)) from error
        return SimpleNamespace(text=text, close=lambda: None)


class Table:
    """As much of a DataFrame as a publication needs: a value, and how many files of it are written."""

    def __init__(self, value: str, files: int = 2) -> None:
        self.value = value
        self.files = files
        self.schema = StructType()
        self.columns: list[str] = []

    def drop(self, *names: str) -> Table:
        return self

    def coalesce(self, tasks: int) -> Table:
        return self

    def count(self) -> int:
        return self.files


class Session(SimpleNamespace):
    """Unlike its parent, it can be a key of a mapping."""

    __hash__ = object.__hash__


def session(disk: Disk) -> Any:
    """A Spark session with this file system; its reader counts files."""
    streams = SimpleNamespace(toString=lambda stream, _: stream.text)
    apache = SimpleNamespace(
        hadoop=SimpleNamespace(fs=SimpleNamespace(Path=lambda text: HadoopPath(text, disk.scheme))),
        commons=SimpleNamespace(io=SimpleNamespace(IOUtils=streams)),
    )
    java = SimpleNamespace(org=SimpleNamespace(apache=apache))
    state = SimpleNamespace(newHadoopConf=lambda: disk)

    def parquet(folder: str) -> Table:
        names = os.listdir(HadoopPath(folder, disk.scheme).text)
        return Table("", sum(name.startswith("part-") for name in names))

    reader = SimpleNamespace(parquet=parquet)
    reader.schema = reader.option = lambda *_: reader
    return Session(
        _jvm=java,
        _jsparkSession=SimpleNamespace(sessionState=lambda: state),
        read=reader,
        sparkContext=SimpleNamespace(defaultParallelism=2),
    )


def write_files(disk: Disk) -> Callable[[Table, str], None]:
    """A writer for ``writers.WRITERS``."""

    def write(table: Table, folder: str) -> None:
        place = Path(HadoopPath(folder, disk.scheme).text)
        for i in range(table.files):
            disk.hook("part", f"{place}/part-{i}")
            place.mkdir(parents=True, exist_ok=True)
            (place / f"part-{i}").write_text(table.value)

    return write

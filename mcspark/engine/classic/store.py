"""Files by Hadoop's file systems: file, hdfs, s3a, and whatever else is on the class path."""

from __future__ import annotations

import re
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from mcspark.engine.classic.jvm import java_class

_PATTERN = re.compile(r"([\[\]{}*?\\])")
_UMASK = "fs.permissions.umask-mode"
# Of each session by scheme and host: every new one would copy all of Hadoop's settings.
_stores: WeakKeyDictionary[SparkSession, dict[tuple[str, str], HadoopStore]] = WeakKeyDictionary()


def store_of(spark: SparkSession, path: str) -> HadoopStore:
    """The file system that holds a path, asked for once in a session; an error of Java's if it is no path."""
    stores = _stores.setdefault(spark, {})
    uri: Any = java_class("org.apache.hadoop.fs.Path", spark._jvm)(path).toUri()
    root = (str(uri.getScheme()), str(uri.getAuthority()))
    if root not in stores:
        stores[root] = HadoopStore(spark, path)
    return stores[root]


class HadoopStore:
    """The file system that holds a path (see :class:`mcspark.engine.interface.Store`)."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._class = partial(java_class, jvm=spark._jvm)
        self._path = self._class("org.apache.hadoop.fs.Path")
        self._conf: Any = spark._jsparkSession.sessionState().newHadoopConf()
        system: Any = self._path(path).getFileSystem(self._conf)
        self.scheme = str(system.getUri().getScheme())
        # Without the checksum layer: its hidden .crc companions would turn a hand-edited file into an error.
        self._system = system.getRawFileSystem() if self.scheme == "file" else system
        self._local_names: dict[str, str] = {}

    def full_name(self, path: str) -> str:
        return str(self._system.makeQualified(self._path(path)).toString())

    def local_name(self, path: str) -> str:
        if path not in self._local_names:
            name = urlsplit(self._system.makeQualified(self._path(path)).toUri().toString()).path
            self._local_names[path] = unquote(name)
        return self._local_names[path]

    def parent(self, path: str) -> str | None:
        above = self._path(path).getParent()
        return None if above is None else str(above.toString())

    def exists(self, path: str) -> bool:
        return bool(self._system.exists(self._path(path)))

    def is_folder(self, path: str) -> bool:
        return bool(self._system.getFileStatus(self._path(path)).isDirectory())

    def size(self, path: str) -> int:
        return int(self._system.getFileStatus(self._path(path)).getLen())

    def modified(self, path: str) -> float:
        return float(self._system.getFileStatus(self._path(path)).getModificationTime()) / 1000

    def names(self, folder: str) -> list[str]:
        found = self._system.listStatus(self._path(folder))
        return [str(status.getPath().getName()) for status in found]

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        found = self._system.listStatus(self._path(folder))
        return [(str(status.getPath().getName()), bool(status.isDirectory())) for status in found]

    def stamps(self, folder: str) -> list[tuple[str, int, float]]:
        return [
            (str(s.getPath().getName()), int(s.getLen()), float(s.getModificationTime()) / 1000)
            for s in self._system.listStatus(self._path(folder))
            if s.isFile()
        ]

    def below(self, folder: str) -> list[str]:
        found, names = self._system.listFiles(self._path(folder), True), []
        while found.hasNext():
            names.append(str(found.next().getPath().toString()))
        return names

    def matching(self, folder: str, pattern: str) -> list[str]:
        place = _PATTERN.sub(r"\\\1", folder.rstrip("/"))
        found = self._system.globStatus(self._path(f"{place}/{pattern}")) or []
        return [str(status.getPath().toString()) for status in found]

    def make_folder(self, path: str) -> bool:
        return bool(self._system.mkdirs(self._path(path)))

    def delete(self, path: str, *, whole: bool) -> bool:
        return bool(self._system.delete(self._path(path), whole))

    def move(self, source: str, target: str) -> bool:
        return bool(self._system.rename(self._path(source), self._path(target)))

    def replace(self, source: str, target: str) -> None:
        option = self._class("org.apache.hadoop.fs.Options$Rename").OVERWRITE
        array = self._class("java.lang.reflect.Array")
        overwrite = array.newInstance(option.getClass(), 1)
        array.set(overwrite, 0, option)
        where = self._path(target)
        context = self._class("org.apache.hadoop.fs.FileContext").getFileContext(where.toUri(), self._conf)
        context.rename(self._path(source), where, overwrite)

    def read_text(self, path: str) -> str:
        stream = self._system.open(self._path(path))
        try:
            return str(self._class("org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
        finally:
            stream.close()

    def head(self, path: str, limit: int) -> bytes:
        where = self._path(path)
        codecs = self._class("org.apache.hadoop.io.compress.CompressionCodecFactory")(self._conf)
        bounded = self._class("org.apache.commons.io.input.BoundedInputStream")
        stream = self._system.open(where)
        try:
            codec = codecs.getCodec(where)
            if codec is not None:
                stream = codec.createInputStream(stream)
            return bytes(self._class("org.apache.commons.io.IOUtils").toByteArray(bounded(stream, limit)))
        finally:
            stream.close()

    def write(self, path: str, content: bytes) -> None:
        stream = self._system.create(self._path(path), True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def copy_to_local(self, path: str, folder: str) -> None:
        self._system.copyToLocalFile(False, self._path(path), self._path(folder), True)


def respect_umask(spark: SparkSession, own: int) -> None:
    """Let local files have no more permissions than this mask gives, whoever writes them.

    Hadoop would make them readable to all. What the operator has set is only ever tightened.
    """
    _stores.pop(spark, None)
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()
    given = str(hadoop.get(_UMASK, "022"))
    if given.isdigit():  # not of the form u=rwx,g=rx,o=
        hadoop.set(_UMASK, f"{int(given, 8) | own:03o}")
        # A local file system that Spark has used already would be used again, with the umask it began with.
        hadoop.set("fs.file.impl.disable.cache", "true")

"""Files on a file system that this machine and the Spark behind a connection have both mounted."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from mcspark.engine.errors import FileNotFoundInStoreError, StoreError

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<host>[^/]*))?(?=/)")


class MountedStore:
    """The local file system (see :class:`mcspark.engine.interface.Store`).

    Raises
    ------
    StoreError
        If the path has another scheme: such a store is reached by Hadoop's clients alone, and those are not
        in this process.
    """

    scheme = "file"

    def __init__(self, path: str) -> None:
        found = _SCHEME.match(path)
        if found and found["scheme"] != "file":
            raise StoreError(
                f"over Spark Connect, paths must be on a file system that this machine and Spark have both "
                f"mounted, and {found['scheme']}: is none; mount it, or run the job with spark-submit"
            )

    def full_name(self, path: str) -> str:
        return f"file:{self.local_name(path)}"

    def local_name(self, path: str) -> str:
        found = _SCHEME.match(path)
        below = path[found.end() :] if found else path
        return os.path.normpath(Path.cwd() / (f"/{below.lstrip('/')}" if below.startswith("/") else below))

    def _path(self, path: str) -> Path:
        return Path(self.local_name(path))

    def parent(self, path: str) -> str | None:
        where = self._path(path)
        return None if where.parent == where else f"file:{where.parent}"

    def exists(self, path: str) -> bool:
        with _told():
            return self._path(path).exists()

    def is_folder(self, path: str) -> bool:
        with _told():
            return self._path(path).is_dir()

    def size(self, path: str) -> int:
        with _told():
            return self._path(path).stat().st_size

    def modified(self, path: str) -> float:
        with _told():
            return self._path(path).stat().st_mtime

    def names(self, folder: str) -> list[str]:
        with _told():
            return [found.name for found in self._path(folder).iterdir()]

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        with _told(), os.scandir(self._path(folder)) as found:
            return [(entry.name, entry.is_dir()) for entry in found]

    def stamps(self, folder: str) -> list[tuple[str, int, float]]:
        with _told(), os.scandir(self._path(folder)) as found:
            files = [(entry.name, entry.stat()) for entry in found if entry.is_file()]
        return [(name, status.st_size, status.st_mtime) for name, status in files]

    def below(self, folder: str) -> list[str]:
        found = os.walk(self._path(folder))
        return [f"file:{Path(place) / name}" for place, _, names in found for name in names]

    def matching(self, folder: str, pattern: str) -> list[str]:
        return [f"file:{found}" for found in self._path(folder).glob(pattern)]

    def make_folder(self, path: str) -> bool:
        with _told():
            self._path(path).mkdir(parents=True, exist_ok=True)
        return True

    def delete(self, path: str, *, whole: bool) -> bool:
        where = self._path(path)
        if not os.path.lexists(where):
            return False
        with _told():
            if where.is_symlink() or not where.is_dir():
                where.unlink()
            elif whole:
                shutil.rmtree(where)
            else:
                where.rmdir()
        return True

    def move(self, source: str, target: str) -> bool:
        with _told():
            self._path(source).rename(self._path(target))
        return True

    def replace(self, source: str, target: str) -> None:
        with _told():
            self._path(source).replace(self._path(target))

    def read_text(self, path: str) -> str:
        with _told():
            return self._path(path).read_bytes().decode("utf-8", errors="replace")

    def head(self, path: str, limit: int) -> bytes:
        with _told(), pa.input_stream(self.local_name(path), compression="detect") as stream:
            return bytes(stream.read(limit))

    def write(self, path: str, content: bytes) -> None:
        with _told():
            self._path(path).write_bytes(content)

    def copy_to_local(self, path: str, folder: str) -> None:
        where = self._path(path)
        with _told():
            if where.is_dir():
                shutil.copytree(where, Path(folder) / where.name if Path(folder).is_dir() else folder)
            else:
                shutil.copy2(where, folder)


@contextmanager
def _told() -> Iterator[None]:
    """What the system refuses, as an error of the session."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundInStoreError(f"{error.filename}: no such file") from error
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise StoreError(f"{where}{error.strerror or error}") from error

"""Files on this machine: where they are, and how a command writes them, aside and in place when whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcspark.errors import ConfigurationError


def local_place(path: str) -> Path:
    """A path of this machine, with or without ``file:``."""
    return Path(path.removeprefix("file:"))


def free_place(target: str, *, force: bool) -> Path:
    """Where to write.

    Raises
    ------
    ConfigurationError
        If something is there that may not be replaced, or the folder is not there.
    """
    place = Path(target)
    if place.exists() and not (force and place.is_file()):
        raise ConfigurationError(f"{target} exists; name another file, or replace it with --force")
    if not place.parent.is_dir():
        raise ConfigurationError(f"{target}: there is no folder {place.parent}; make it first")
    return place


@contextmanager
def written_aside(place: Path) -> Iterator[Path]:
    """A file beside ``place`` to write to; it takes its place if nothing goes wrong."""
    aside = place.with_name(f".{place.name}.writing-{os.getpid()}")
    try:
        yield aside
        aside.replace(place)
    finally:
        aside.unlink(missing_ok=True)

"""Every file below a folder, by its name below it; on any file system that can list a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

Entries = Callable[[str], Iterable[tuple[str, bool]]]
"""From a folder to the names in it, and whether each is a folder."""

_THREADS = 8


def local_entries(folder: str) -> list[tuple[str, bool]]:
    """What is in a folder of this machine; nothing where it has just been removed."""
    try:
        with os.scandir(folder) as found:
            return [(entry.name, entry.is_dir()) for entry in found]
    except FileNotFoundError:
        return []


def walk(folder: str, entries: Entries, skip: Callable[[str], bool]) -> list[str]:
    """Sorted names of the files, such as ``ds=2026-11-26/part-0.parquet``.

    Parameters
    ----------
    folder : str
    entries : callable
    skip : callable
        Whether a folder of this name is left alone; it is not listed then.
    """
    files: list[str] = []
    below = [""]
    with ThreadPoolExecutor(_THREADS) as pool:
        while below:
            deeper: list[str] = []
            listed = pool.map(lambda prefix: entries(f"{folder.rstrip('/') or '/'}/{prefix}"), below)
            for prefix, found in zip(below, listed, strict=True):
                for name, is_folder in found:
                    if not is_folder:
                        files.append(f"{prefix}{name}")
                    elif not skip(name):
                        deeper.append(f"{prefix}{name}/")
            below = deeper
    return sorted(files)

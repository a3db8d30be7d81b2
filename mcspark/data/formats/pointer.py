"""Parquet on object stores, where a folder cannot be renamed: a folder a run, and a pointer to one of them.

A run writes its rows to ``<leaf>/_runs/<run>``, which never changes afterwards, and publishes them by one
small object, ``<leaf>/_current.json``, that names the run. This package's one reader follows the pointer;
others read the folder that the run's summary names. At the leaf itself a plain reader finds nothing, never
the rows of two runs. The run before stays until the next one, for readers that have begun.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count

import structlog

from mcspark.errors import ContractError
from mcspark.identifiers import check_run_id
from mcspark.runtime.files.files import Files, parent
from mcspark.runtime.files.untrusted import read_json

log = structlog.get_logger(__name__)

POINTER = "_current.json"
RUNS = "_runs"
_DEPTH = 4
_LIMIT = 10_000


class Pointer:
    """The pointer of one leaf, to be set by a run that holds its lease.

    Parameters
    ----------
    files : Files
    leaf : str
    run_id : str
    """

    def __init__(self, files: Files, leaf: str, run_id: str) -> None:
        self._files = files
        self._leaf = leaf
        self._run_id = run_id
        self.before = pointed_run(files, leaf)
        self._is_set = False
        self.folder = f"{leaf}/{RUNS}/{run_id}"

    def set(self) -> None:
        """Publish the run's folder."""
        self._is_set = True
        point(self._files, self._leaf, self._run_id)

    def undo(self) -> None:
        """Point to the run before."""
        if self._is_set:
            point(self._files, self._leaf, self.before)
        self._is_set = False

    def forget_old_runs(self) -> None:
        """Remove the folders of all runs but this one and the one before it."""
        folder = f"{self._leaf}/{RUNS}"
        for run_id in self._files.names(folder):
            if run_id not in (self._run_id, self.before):
                self._files.delete(f"{folder}/{run_id}")


def point(files: Files, leaf: str, run_id: str) -> None:
    """Have the pointer name a run, or none at all where that is empty."""
    if run_id:
        files.write_text(f"{leaf}/{POINTER}", json.dumps({"run_id": run_id}))
    else:
        files.delete(f"{leaf}/{POINTER}")


def pointed_run(files: Files, leaf: str) -> str:
    """The run that the leaf's pointer names, for whoever replaces it; empty if there is no valid one."""
    try:
        return current_run(files, leaf) or ""
    except ContractError as error:
        if isinstance(error.__cause__, OSError):
            raise
        log.warning("a pointer that cannot be read is replaced", reason=str(error))
        return ""


def current_run(files: Files, leaf: str) -> str | None:
    """The run that the leaf's pointer names; None without a pointer.

    Raises
    ------
    ContractError
        If the pointer cannot be read.
    """
    path = f"{leaf}/{POINTER}"
    try:
        return check_run_id(read_json(files.read_text(path, limit=_LIMIT))["run_id"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ContractError(
            f"{path}: no readable pointer to a run ({error}); publish the table again"
        ) from error


def pointed_folders(files: Files, path: str, partition: Mapping[str, str]) -> list[str]:
    """The folders that the pointers of a table name, of one partition or of all; none where no pointer is.

    Parameters
    ----------
    files : Files
    path : str
        Root of the table.
    partition : mapping of str to str
        Empty for the whole table.
    """
    if files.renames:
        return []
    root = path.rstrip("/")
    leaves = ["/".join([root, *(f"{key}={value}" for key, value in partition.items())])]
    found = [leaf for leaf in leaves if files.exists(f"{leaf}/{POINTER}")]
    for depth in count():
        if found or depth > _DEPTH:
            break
        pointers = files.matching(root, "/".join([*["*=*"] * depth, POINTER]))
        found = [parent(pointer) for pointer in pointers]
    return [f"{leaf}/{RUNS}/{current_run(files, leaf)}" for leaf in found]

"""What a run may replace: folders and files that this program has made, and nothing of anybody else's.

Every folder that is published carries a mark, ``_mcspark.json``, with its kind and the names of its files;
Spark's readers ignore such names. A folder without a mark is this program's if all of its files have the
names that earlier versions gave them and a manifest beside it tells that it was published, or if it is a
saved model. An empty mark takes in a folder by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from typing import Any

from mcspark.data.leases.manifest import folder as manifests_of
from mcspark.errors import ConfigurationError
from mcspark.runtime.files.files import Files, leaf, parent
from mcspark.runtime.files.mounts import is_movable, mounts_within
from mcspark.runtime.files.untrusted import read_json

MARK = "_mcspark.json"
MODEL = "model"
"""The kind of a folder that is no table."""

_MAX_MARK = 16 * 1024 * 1024
_CHECKSUM = re.compile(r"(.*/|)\.([^/]+)\.crc")
_TABLE_FILE = re.compile(r"(_SUCCESS|part-[^/]+)")
_MODEL_FILE = re.compile(
    r"(scores/\d{4}/)?(run\.json|(segments/\d{4}/)?(model\.json|trees_\d+\.txt)"
    r"|(segments/)?(curves|pairs)/(_SUCCESS|part-[^/]+))"
)
_LEAVINGS = re.compile(
    r"(.*/|)(\.[^/]+\.(leases?|lease-[^/]+|publication|(staging|old|work|writing)-[^/]+)|_[^/]+_manifests)(/.*|)"
)
_PARTITION = re.compile(r"[^./=][^/=]*=[^/]*")
_MANIFESTS_READ = 100


def mark(files: Files, folder: str, kind: str, run_id: str) -> None:
    """Mark a folder that is about to be published; recovery finds a dead run's folders by its id."""
    names = [name for name in sorted(files.below(folder)) if not _CHECKSUM.fullmatch(name)]
    files.write_text(
        f"{folder}/{MARK}", json.dumps({"kind": kind, "run_id": run_id, "files": names}, ensure_ascii=False)
    )


def refuse_unmovable(files: Files, place: str) -> None:
    """Refuse a folder that cannot be renamed, before anything is.

    Raises
    ------
    ConfigurationError
        If it is a mount point, has one within, or lies on another file system than its parent.
    """
    if not files.is_local or not files.exists(place):
        return
    name = files.local_name(place)
    inside = mounts_within(name)
    if inside or not is_movable(name):
        point = inside[0] if inside else name
        raise ConfigurationError(
            f"{place}: cannot be replaced, for {point} is a mount point, and a new folder takes the place of "
            f"the old one by renaming; name a folder below the mount, such as {name}/table"
        )


def refuse_others_folder(files: Files, place: str, kind: str, homes: Iterable[str]) -> None:
    """Refuse to replace a folder in which anything is that this program has not made as this kind.

    Parameters
    ----------
    files : Files
    place : str
        Full name of the folder.
    kind : str
        What is going there: ``output``, ``rejected``, ``metrics``, ``model``, ``results``.
    homes : iterable of str
        Outputs whose manifests may tell of the folder, if it bears no mark.

    Raises
    ------
    ConfigurationError
    """
    if not files.exists(place):
        return
    if not files.is_folder(place):
        raise ConfigurationError(f"{place}: is a file; name a folder, or move the file away")
    names = [name for name in files.below(place) if not _CHECKSUM.fullmatch(name)]
    if names and (others := _foreign(files, place, kind, names, list(homes))):
        adopt = (
            ""
            if MARK in names
            else f"; or, if an earlier version has made all of it, put an empty {MARK} there"
        )
        raise ConfigurationError(
            f"{place}: holds {len(others)} of {len(names)} files that this program has not made as its "
            f"{kind}, such as {others[0]}; nothing is replaced: name another folder, or move them away{adopt}"
        )


def refuse_others_text(files: Files, place: str, known: re.Pattern[str]) -> None:
    """Refuse to replace a file that is not of this program; ``known`` is found in one that is.

    Raises
    ------
    ConfigurationError
    """
    if files.is_folder(place):
        raise ConfigurationError(f"{place}: is a folder; name a file")
    try:
        is_own = not files.exists(place) or known.search(files.read_text(place)) is not None
    except (OSError, ValueError):
        is_own = False
    if not is_own:
        raise ConfigurationError(
            f"{place}: is a file that this program has not made, so it is not replaced; move it away, or "
            "name another place"
        )


def is_partition(name: str) -> bool:
    """Whether a folder of this name is a partition: ``ds=2026-11-26``."""
    return _PARTITION.fullmatch(name) is not None


def _foreign(files: Files, place: str, kind: str, names: list[str], homes: list[str]) -> list[str]:
    marks = {_above(name): _read_mark(files, f"{place}/{name}") for name in names if _is_mark(name)}
    plain = [n for n in names if not (_is_mark(n) or _LEAVINGS.fullmatch(n))]
    others, unmarked = [], []
    for name in plain:
        home = next((folder for folder in _folders(name) if folder in marks), None)
        if home is None:
            unmarked.append(name)
        elif not _is_listed(name[len(home) :], marks[home], kind):
            others.append(name)
    return sorted([*others, *_not_of_earlier_versions(files, place, kind, unmarked, homes)])


def _is_listed(name: str, found: dict[str, Any], kind: str) -> bool:
    if found.get("kind", kind) != kind:
        return False
    listed = found.get("files")
    return name in listed if isinstance(listed, list) else _looks_own(name, kind)


def _looks_own(name: str, kind: str) -> bool:
    return (_MODEL_FILE if kind == MODEL else _TABLE_FILE).fullmatch(name) is not None


def _not_of_earlier_versions(
    files: Files, place: str, kind: str, names: list[str], homes: list[str]
) -> list[str]:
    """Of files without a mark those that no earlier version has published."""
    if kind == MODEL:
        is_model = not names or _is_saved_model(files, place)
        return names if not is_model else [name for name in names if not _looks_own(name, kind)]
    others = []
    reported: dict[str, bool] = {}
    for name in names:
        folder, _, file = name.rpartition("/")
        where = f"{place}/{folder}".rstrip("/")
        if not _looks_own(file, kind) or not all(map(is_partition, folder.split("/") if folder else ())):
            others.append(name)
            continue
        if where not in reported:
            within = [f"{home}/{folder}" for home in homes] if folder else []
            reported[where] = _is_told(files, where, kind, [*homes, *within, where])
        if not reported[where]:
            others.append(name)
    return others


def _is_told(files: Files, place: str, kind: str, homes: Collection[str]) -> bool:
    """Whether a manifest says that a run has published this folder; that of a failed run says nothing."""
    for home in dict.fromkeys([*homes, parent(place)]):
        folder = manifests_of(files, home)
        for name in reversed(files.names(folder)[-_MANIFESTS_READ:]):
            try:
                found = read_json(files.read_text(f"{folder}/{name}", limit=_MAX_MARK))["paths"][kind]
                if leaf(found) == leaf(place):
                    return True
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue
    return False


def _is_saved_model(files: Files, place: str) -> bool:
    try:
        plain = read_json(files.read_text(f"{place}/model.json"))
    except (OSError, ValueError):
        return False
    return isinstance(plain, dict) and {"schema_version", "mcspark", "sha256"} <= set(plain)


def _read_mark(files: Files, path: str) -> dict[str, Any]:
    try:
        text = files.read_text(path, limit=_MAX_MARK)
        plain = read_json(text) if text.strip() else {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}: no readable mark of this program ({error}); remove it") from error
    return plain if isinstance(plain, dict) else {}


def _is_mark(name: str) -> bool:
    return name == MARK or name.endswith(f"/{MARK}")


def _above(name: str) -> str:
    """The folder of a relative name, with a slash at its end; empty for the top."""
    head, slash, _ = name.rpartition("/")
    return head + slash


def _folders(name: str) -> list[str]:
    """The folders that a relative name lies in, innermost first, the top last."""
    found = []
    while name:
        name = _above(name.rstrip("/"))
        found.append(name)
    return found

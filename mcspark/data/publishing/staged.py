"""One folder or file of a publication, and how far it is on its way to its place."""

from __future__ import annotations

from dataclasses import dataclass

from mcspark.data.formats.pointer import Pointer
from mcspark.data.publishing.commits import Commit


@dataclass
class Staged:
    """What was written aside, and what has been done with it."""

    leaf: str
    staging: str
    aside: str
    had_old: bool
    made: list[str]
    commit: Commit | None = None
    pointer: Pointer | None = None
    is_folder: bool = True
    text: str | None = None
    moved_aside: bool = False
    in_place: bool = False

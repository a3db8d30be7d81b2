"""Mount points of this machine: a folder that another file system, or another folder, is mounted on."""

from __future__ import annotations

import os
import re
from pathlib import Path

_TABLE = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def mounts_within(folder: str) -> list[str]:
    """The mount points at or below a folder of this machine, whose path has no links.

    The kernel's table knows bind mounts too, which ``os.path.ismount`` cannot tell from plain folders.
    """
    try:
        lines = _TABLE.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # no Linux
        return [folder] if os.path.ismount(folder) else []
    points = {_ESCAPED.sub(lambda code: chr(int(code[1], 8)), line.split(" ")[4]) for line in lines}
    return sorted(point for point in points if point == folder or point.startswith(f"{folder.rstrip('/')}/"))


def is_movable(folder: str) -> bool:
    """Whether the folder lies on the file system of its parent, and so can be renamed to a sibling."""
    return Path(folder).stat().st_dev == Path(folder).parent.stat().st_dev

"""Processes of this host."""

from __future__ import annotations

import os


def is_alive(pid: int) -> bool:
    """Whether there is a process of this id, of whoever."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

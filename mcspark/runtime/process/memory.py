"""Memory that this process may take."""

from __future__ import annotations

import os
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where containers, by version of their control groups, say how much theirs is."""


def memory_bytes(limits: tuple[str, ...] = _LIMITS) -> int:
    """Bytes of the machine, or of the container if that has less."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in limits:
        try:
            text = Path(limit).read_text().strip()
        except OSError:
            continue
        if text.isdigit():  # else "max"
            found = min(found, int(text))
    return found

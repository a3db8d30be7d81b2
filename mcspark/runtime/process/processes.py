"""Processes, named so that another one can tell whether they still run.

A number alone names no process: containers count their own from 1, hosts may share a name, and numbers are
given out again.
"""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_DEAD = ("Z", "X")


@dataclass(frozen=True)
class Process:
    """One process, for others on this or another host.

    Parameters
    ----------
    host : str
        Name of its host, for people.
    table : str
        The table of processes in which ``pid`` means something: that of one PID namespace since one start of
        the kernel. Empty where it is unknown.
    pid : int
    started : int
        When it started, in ticks since the kernel did; 0 where that is unknown.
    """

    host: str
    table: str
    pid: int
    started: int

    def is_gone(self) -> bool | None:
        """Whether it has ended; None if that cannot be judged from here: another host, another container."""
        if not self.table or self.table != table_of_processes():
            return None
        return not _runs(self.pid, self.started)


def this_process() -> Process:
    """The calling process."""
    pid = os.getpid()
    found = _state_and_start(pid)
    return Process(socket.gethostname(), table_of_processes(), pid, found[1] if found else 0)


def table_of_processes() -> str:
    """Name of the table of processes that this process sees; empty where it is unknown."""
    if not sys.platform.startswith("linux"):
        return f"host {socket.gethostname()}"  # no containers here
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"boot {boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _runs(pid: int, started: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    found = _state_and_start(pid)
    if found is None:
        return True
    state, start = found
    return state not in _DEAD and (start == started or not started)


def _state_and_start(pid: int) -> tuple[str, int] | None:
    """The state of a process and when it started; None where the system does not tell."""
    try:
        # The name of the program, in parentheses, may hold anything.
        fields = (_PROC / f"{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return fields[0], int(fields[19])
    except (OSError, IndexError, ValueError):
        return None

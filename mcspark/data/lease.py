"""One run at a time on an output: a file that only one run can make, renewed while the run lives.

The lease of a leaf is ``.<leaf>.lease`` beside it. It names the run, the host and the process, and until when
it holds; its holder writes a later time into it every few minutes. A run finds it stale when that time has
passed, or when the process is on this host and gone, and takes it over.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from dataclasses import asdict, dataclass
from types import TracebackType

import structlog
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from mcspark.errors import McsparkError, OutputHeldError
from mcspark.runtime.files import Files, beside, leaf
from mcspark.runtime.processes import is_alive
from mcspark.runtime.untrusted import read_json

log = structlog.get_logger(__name__)

HOLDS_FOR = 900.0
"""Seconds that a lease holds without being renewed; a run that died on another host blocks no longer."""

_MOST_PIDS = 2**31


@dataclass(frozen=True)
class Holder:
    """Who holds a lease."""

    run_id: str
    host: str
    pid: int
    expires: float

    def is_gone(self) -> bool:
        """Whether the run has died, as far as this host can tell."""
        if self.expires < time.time():
            return True
        return self.host == socket.gethostname() and not is_alive(self.pid)


class Lease:
    """The right to replace a leaf; a context manager that gives it back.

    Parameters
    ----------
    spark : SparkSession
    place : str
        The leaf, as in :attr:`mcspark.data.sink.Target.leaf`.
    run_id : str
    holds_for : float
        Seconds; renewed three times as often.

    Raises
    ------
    OutputHeldError
        On entering, if a living run holds the leaf.
    """

    def __init__(self, spark: SparkSession, place: str, run_id: str, holds_for: float = HOLDS_FOR) -> None:
        self._files = Files(spark, place)
        self._place = self._files.qualify(place)
        self._file = beside(self._place, f".{leaf(self._place)}.lease")
        self._run_id = run_id
        self._holds_for = holds_for
        self._made: list[str] = []
        self._ended = threading.Event()
        self._renewer = threading.Thread(target=self._renew, name="lease", daemon=True)

    def __enter__(self) -> Lease:
        self._made = self._files.missing_above(self._file)
        if not self._files.create_exclusively(self._file, self._text()):
            self._take_over()
        self.check()  # an object store may have let another run in at the same moment
        self._renewer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._renewer.ident is not None:
            self._renewer.join()
        holder = self._holder()
        if holder is not None and holder.run_id == self._run_id:
            self._files.delete(self._file)
        self._files.delete_empty(self._made)

    def check(self) -> None:
        """Make sure, just before publishing, that the lease is still this run's.

        Raises
        ------
        OutputHeldError
            If it is not: this run was thought dead, and another one works on the output.
        """
        holder = self._holder()
        if holder is None or holder.run_id != self._run_id:
            raise OutputHeldError(
                f"{self._place}: {_who(holder)} took the output over; this run publishes nothing"
            )

    def _take_over(self) -> None:
        holder = self._holder()
        if holder is None or not holder.is_gone():
            raise OutputHeldError(
                f"{self._place}: {_who(holder)} is writing there; wait for it, "
                f"or if it is dead remove {self._file}"
            )
        log.warning("took over the lease of a dead run", output=self._place, run_id=holder.run_id)
        grave = f"{self._file}-{self._run_id}"
        try:
            self._files.move(self._file, grave)
            # Two runs may find one lease stale: the slower one must not bury the lease of the faster.
            buried = _parse(self._files.read_text(grave))
            mine = buried == holder and self._files.create_exclusively(self._file, self._text())
            if buried != holder:
                self._files.move(grave, self._file)
        except OSError:
            mine = False
        self._files.delete(grave)
        if not mine:
            raise OutputHeldError(
                f"{self._place}: another run took the output over at this moment; wait for it"
            )

    def _renew(self) -> None:
        while not self._ended.wait(self._holds_for / 3) and self._renewed():
            pass

    def _renewed(self) -> bool:
        """Write a later time; False when there is nothing left to renew."""
        try:
            self.check()
            self._files.write_text(self._file, self._text())
        except OutputHeldError:
            return False
        except (OSError, McsparkError, Py4JError) as error:
            log.warning("the lease could not be renewed", output=self._place, reason=str(error))
        return True

    def _holder(self) -> Holder | None:
        """Who holds the lease; None if nobody does, or its maker has not written its name yet."""
        try:
            return _parse(self._files.read_text(self._file, limit=10_000))
        except FileNotFoundError:
            return None

    def _text(self) -> str:
        expires = time.time() + self._holds_for
        return json.dumps(asdict(Holder(self._run_id, socket.gethostname(), os.getpid(), expires)))


def _parse(text: str) -> Holder | None:
    try:
        holder = Holder(**read_json(text))
    except (ValueError, TypeError):
        return None
    words = isinstance(holder.run_id, str) and isinstance(holder.host, str)
    known = words and type(holder.pid) is int and 0 < holder.pid < _MOST_PIDS
    timed = isinstance(holder.expires, int | float)
    return holder if known and timed else None


def _who(holder: Holder | None) -> str:
    return f"run {holder.run_id} ({holder.host}, process {holder.pid})" if holder else "another run"

"""One run at a time on an output: each run leaves a mark beside the table, and yields to other runs' marks.

The leases of a table are files ``.<table>.leases/<run>.lease`` beside it. Each names its run, its process and
the part of the table that it holds: the whole table, or one partition, which excludes the whole table and no
other partition. A run writes its own mark first and looks at the others then, so of two that begin at once at
least one sees the other; this needs no more than a store whose listings show what has been written.

A mark is void when its process has ended, as far as this host can tell, or when it was not renewed for
:data:`HOLDS_FOR` by the clock of the file system, which all hosts share. What its run has left half published
is mended before anything else happens there.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from types import TracebackType

import structlog
from pyspark.sql import SparkSession

from mcspark.data.leases.claim import Claim, Mark, parse_claim, table_and_part, within
from mcspark.data.leases.journal import Journal
from mcspark.data.leases.recovery import is_torn, recover
from mcspark.engine.errors import ENGINE_ERRORS
from mcspark.errors import McsparkError, OutputHeldError
from mcspark.runtime.files.files import Files, beside, leaf
from mcspark.runtime.process.processes import this_process

log = structlog.get_logger(__name__)

HOLDS_FOR = 300.0
"""Seconds that a lease holds without being renewed, where nobody can tell whether its process runs."""

BEATS = 10
"""How often a lease is renewed in that time."""

MOMENT = 10.0
"""Seconds that a run waits for another one which has not decided yet."""

SHARED_WAIT = 120.0
"""Seconds that a run waits while another one replaces a folder that several outputs share."""

_LIMIT = 10_000


class Lease:
    """The right to replace a leaf; a context manager that gives it back.

    On entering, what dead runs have left half published there is mended.

    Parameters
    ----------
    spark : SparkSession
    place : str
        What is to be replaced: a folder, or one partition of a table, ``<table>/<key>=<value>``.
    run_id : str
    wait : float
        Seconds to wait for another run that holds it.
    holds_for : float
        Seconds that a lease holds without being renewed.

    Raises
    ------
    OutputHeldError
        On entering, if a living run holds the leaf, the table around it, or a partition of it.
    """

    def __init__(
        self, spark: SparkSession, place: str, run_id: str, *, wait: float = 0.0, holds_for: float = HOLDS_FOR
    ) -> None:
        self._spark = spark
        self._files = Files(spark, place)
        self.place = self._files.qualify(place)
        self._table, self._part = table_and_part(self.place)
        self._folder = beside(self._table, f".{leaf(self._table)}.leases")
        self._file = f"{self._folder}/{run_id}.lease"
        self._run_id = run_id
        self._wait = wait
        self._holds_for = holds_for
        self._made: list[str] = []
        self._written = 0.0
        self._lost = False
        self._ended = threading.Event()
        self._renewer = threading.Thread(target=self._renew, name="lease", daemon=True)

    def __enter__(self) -> Lease:
        self._made = self._files.missing_above(self._folder)
        try:
            void = self._claim()
            self._renewer.start()
            self._mend(void)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._renewer.ident is not None:
            self._renewer.join()
        self._withdraw()

    def check(self) -> None:
        """Make sure, just before anything is changed, that the lease is still this run's.

        Raises
        ------
        OutputHeldError
            If it is not: this run was thought dead, and another one works on the output.
        """
        if self._lost or not self._files.exists(self._file):
            self._lost = True
            rivals = [mark.who for mark in self._rivals()] or ["another run"]
            raise OutputHeldError(
                f"{self.place}: {rivals[0]} took the output over; this run publishes nothing"
            )

    def is_mine(self) -> bool:
        """Whether the lease is still this run's."""
        try:
            self.check()
        except OutputHeldError:
            return False
        return True

    def _claim(self) -> list[Mark]:
        """Hold the part; returns the void marks in the way, of runs that have to be mended after."""
        since, rivals = time.monotonic(), list[Mark]()
        while True:
            self._write(holds=False)
            decided = time.monotonic() + MOMENT
            while time.monotonic() < decided:
                rivals = self._rivals()
                void = [mark for mark in rivals if mark.is_void(self._holds_for)]
                living = [mark for mark in rivals if mark not in void]
                if not living and not any(self._is_wider(mark) for mark in void):
                    self._write(holds=True)
                    return void
                # Of runs that begin at once the first by name goes on, once the others have seen that.
                if not living or any(self._goes_first(mark) for mark in living):
                    break
                time.sleep(0.1)
            self._withdraw()
            if not living:
                with Lease(
                    self._spark, self._table, f"{self._run_id[:100]}-mend", wait=max(self._wait, MOMENT)
                ):
                    continue
            if time.monotonic() - since >= self._wait:
                raise OutputHeldError(self._held(living))
            time.sleep(min(1.0, self._wait / 20))

    def _goes_first(self, mark: Mark) -> bool:
        return mark.claim is None or mark.claim.holds or mark.claim.run_id < self._run_id

    def _is_wider(self, mark: Mark) -> bool:
        """Whether to mend after this run takes the whole table, of which this run claims a part."""
        part = mark.claim.part if mark.claim else ""
        return part != self._part and within(self._part, part)

    def _held(self, living: list[Mark]) -> str:
        mark = living[0]
        if mark.claim is None:
            left = max(1, round((self._holds_for - mark.age) / 60))
            return (
                f"{self.place}: {mark.who} may be writing there; it counts as dead in {left} minutes, "
                "or remove it if no run is at work"
            )
        return f"{self.place}: {mark.who} is writing there; wait for it, or if it is dead remove {mark.file}"

    def _mend(self, void: list[Mark]) -> None:
        for mark in void:
            run = mark.claim.run_id if mark.claim else None
            log.warning("took over the lease of a dead run", output=self.place, run_id=run)
            if mark.claim and mark.claim.part != self._part:
                self._recover(f"{self._table}/{mark.claim.part}")
        self._recover(self.place)
        for mark in void:
            self._files.delete(mark.file)

    def _recover(self, place: str) -> None:
        def settle(shared: str) -> None:
            with Lease(self._spark, shared, self._run_id, wait=MOMENT):
                pass

        recover(self._spark, place, settle)

    def _rivals(self) -> list[Mark]:
        return [mark for mark in self._marks() if mark.excludes(self._part)]

    def _marks(self) -> list[Mark]:
        """The marks of the other runs; what a write that was cut short has left is removed in time."""
        marks = []
        now = (self._files.modified(self._file) or time.time()) + time.monotonic() - self._written
        for name in self._files.names(self._folder):
            file = f"{self._folder}/{name}"
            modified = None if file == self._file else self._files.modified(file)
            if modified is None:  # withdrawn at this moment
                continue
            if name.endswith(".lease"):
                with suppress(FileNotFoundError):  # withdrawn since
                    marks.append(Mark(file, self._read(file), now - modified))
            elif now - modified > self._holds_for:
                self._files.delete(file)
        return marks

    def _read(self, file: str) -> Claim | None:
        try:
            return parse_claim(self._files.read_text(file, limit=_LIMIT))
        except FileNotFoundError:
            raise
        except (OSError, ValueError):
            return None

    def _write(self, *, holds: bool) -> None:
        claim = Claim(self._run_id, self._part, holds, this_process())
        self._files.write_text(self._file, json.dumps(asdict(claim)))
        self._written = time.monotonic()

    def _withdraw(self) -> None:
        self._files.delete(self._file)
        self._files.delete_empty([self._folder, *self._made])

    def _renew(self) -> None:
        while not self._ended.wait(self._holds_for / BEATS) and self._renewed():
            pass

    def _renewed(self) -> bool:
        """Write the mark anew; False when the lease is lost, and there is nothing left to renew."""
        try:
            self.check()
            self._write(holds=True)
            if any(mark.claim and mark.claim.holds for mark in self._rivals()):
                # Another run has taken over between the look and the write.
                self._lost = True
                self._files.delete(self._file)
        except OutputHeldError:
            return False
        except (OSError, McsparkError, *ENGINE_ERRORS) as error:
            log.warning("the lease could not be renewed", output=self.place, reason=str(error))
        return not self._lost


def settled(spark: SparkSession, place: str, run_id: str) -> bool:
    """Have a folder that others replace be whole before it is read; False if nobody is at it.

    Reading needs no lease, and no right to write, unless a run is replacing the folder, which is waited for,
    or has died over it.

    Raises
    ------
    OutputHeldError
        If a living run does not finish.
    """
    if not Journal(spark, place).exists() and not is_torn(Files(spark, place), place):
        return False
    with Lease(spark, place, run_id, wait=SHARED_WAIT):
        return True

"""The one writer of tables: written aside, read back and counted, then put in place, or nothing changes.

A table, or the one partition of it that is replaced, is a folder, here called the leaf. A new leaf is written
to ``.<leaf>.staging-<run>`` beside it; publishing renames the old leaf to ``.<leaf>.old-<run>``, the new one
into its place, and removes the old one. Spark ignores such names, so no reader sees them, and what a run that
died left behind is mended by the next one that holds the lease. Object stores cannot rename: see
:mod:`mcspark.data.formats.pointer`.

A table that commits by itself (:mod:`mcspark.data.formats.lake`) is written aside and counted in the same
way, then copied in one commit, after all folders are in place; if a later commit fails, the version before is
restored.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from mcspark.data.formats.pointer import Pointer
from mcspark.data.leases.journal import Entry, Journal, State, aside_of, staging_of
from mcspark.data.leases.lease import SHARED_WAIT, Lease
from mcspark.data.leases.ownership import (
    MODEL,
    mark,
    refuse_others_folder,
    refuse_others_text,
    refuse_unmovable,
)
from mcspark.data.leases.recovery import mend
from mcspark.data.publishing.commits import commit_of
from mcspark.data.publishing.staged import Staged
from mcspark.data.publishing.target import Target
from mcspark.data.publishing.whole import refuse_other_layout
from mcspark.data.publishing.writers import rows_written, table_of, tasks_for, writer
from mcspark.errors import ConfigurationError, TransientError
from mcspark.runtime.files.driver_tables import write_parquet
from mcspark.runtime.files.files import Files, parent

__all__ = ["Publication", "Target"]


_LASTING = (errno.EXDEV, errno.EBUSY)
"""Reasons for which a rename fails again however often one tries."""


class Publication:
    """Folders that become visible together, or not at all.

    Use it as a context manager, after taking the lease of every leaf: what was staged and not published is
    removed at its end. Between the two renames of a leaf its readers find nothing for a moment.

    Parameters
    ----------
    spark : SparkSession
    run_id : str
    lease : Lease, optional
        Of the leaf that the publication is about: a journal beside it tells the next run what to undo, should
        this one be killed; nothing is changed once the lease is lost.

    Examples
    --------
    >>> with Lease(spark, "out", run_id) as lease, Publication(spark, run_id, lease) as publication:
    ...     publication.stage(Target("out"), scored, rows=1000)
    ...     publication.publish()                            # doctest: +SKIP
    """

    def __init__(self, spark: SparkSession, run_id: str, lease: Lease | None = None) -> None:
        self._spark = spark
        self._run_id = run_id
        self._lease = lease
        self._staged: list[Staged] = []
        self._shared: dict[str, Journal] = {}
        self._held = ExitStack()
        self._leases = [lease] if lease else []
        self._journal = Journal(spark, lease.place) if lease else None

    def __enter__(self) -> Publication:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_settled = False
        with self._held:
            for staged in self._staged:
                files = self._files(staged.leaf)
                files.delete(staged.staging)
                files.delete_empty(staged.made)
            is_whole = not any(staged.moved_aside or staged.in_place for staged in self._staged)
            self._staged.clear()
            if is_whole and self._is_mine():
                for journal in self._shared.values():
                    journal.remove()
                is_settled = True
        # The journal goes last: with it, the next run finds what this one may yet leave.
        if is_settled and self._journal and self._lease and self._lease.is_mine():
            self._journal.remove()

    def claim(self, target: Target, kind: str) -> None:
        """Refuse, before any work is done, a place that :meth:`stage` of a table would refuse.

        Raises
        ------
        ConfigurationError
            If anything is there that this program has not made as a table of this kind, if the table has
            partitions and the target is not one of them, or if the folder cannot be renamed.
        """
        files = self._files(target.path)
        refuse_other_layout(self._spark, files, target)
        if target.provider is None:
            self._claim(files, files.qualify(target.leaf), kind)

    def claim_folder(self, path: str, kind: str) -> None:
        """Refuse, before any work is done, a place that :meth:`stage_folder` would refuse."""
        self._claim(self._files(path), self._qualify(path), kind)

    def claim_text(self, path: str, known: re.Pattern[str]) -> None:
        """Refuse, before any work is done, a place that :meth:`stage_text` would refuse."""
        refuse_others_text(self._files(path), self._qualify(path), known)

    def _claim(self, files: Files, place: str, kind: str) -> None:
        if files.renames:  # elsewhere a run has a folder of its own, and replaces nothing but the pointer
            refuse_unmovable(files, place)
            refuse_others_folder(files, place, kind, [self._lease.place] if self._lease else [place])

    def stage(self, target: Target, df: DataFrame, *, rows: int, kind: str = "output") -> str:
        """Write a table aside and count it; returns where its readers will find it.

        Parameters
        ----------
        target : Target
        df : DataFrame
            The columns to write; those of the partition are in the folder names and are left out.
        rows : int
            How many rows there must be.
        kind : str
            What the table is, as the summary's ``paths`` call it.

        Raises
        ------
        ConfigurationError
            If the format has no writer, or the folder cannot be written.
        TransientError
            If another number of rows is read back.
        """
        write_frame = writer(target.format)
        frame = df.drop(*(target.partition or {}))

        def write(folder: str) -> int:
            write_frame(frame.coalesce(tasks_for(self._spark, rows)), folder)
            return rows_written(self._spark, folder, frame.schema)

        return self._stage(target, frame.schema, write, rows, kind)

    def stage_rows(
        self, target: Target, rows: Sequence[tuple[Any, ...]], schema: StructType, *, kind: str
    ) -> str:
        """Write a table that is small, and known to the driver, aside without a job; see :meth:`stage`.

        Parameters
        ----------
        rows : sequence of tuple
            In the order of the schema without the columns of the partition, which are left out.
        """
        writer(target.format)
        schema = StructType([field for field in schema.fields if field.name not in (target.partition or {})])
        table = table_of(rows, schema)

        def write(folder: str) -> int:
            write_parquet(self._files(folder), folder, table)
            return len(rows)

        return self._stage(target, schema, write, len(rows), kind)

    def _stage(
        self, target: Target, schema: StructType, write: Callable[[str], int], rows: int, kind: str
    ) -> str:
        """Have a table written to its staging folder, by what returns how many rows are there."""
        files = self._files(target.path)
        place = files.qualify(target.leaf)
        mend(files, place)
        self.claim(target, kind)
        pointer = None if target.provider or files.renames else Pointer(files, place, self._run_id)
        commit = commit_of(self._spark, target, schema, rows, self._run_id)
        staged = self._begin(place, pointer)
        staged.commit = commit
        staged.is_folder = target.provider is None and pointer is None
        if pointer:
            staged.staging = pointer.folder
        if (written := write(staged.staging)) != rows:
            raise TransientError(
                f"{target.place}: {written} rows were written where {rows} were expected; nothing was "
                "published; run again, and if this persists look for an input that changes while it is read"
            )
        marker = f"{staged.staging}/_SUCCESS"
        if not files.exists(marker):  # the operator may have told Spark not to write it
            files.write_text(marker, "")
        if staged.is_folder:
            mark(files, staged.staging, kind, self._run_id)
        return pointer.folder if pointer and not target.table else target.place

    def stage_folder(self, path: str, write: Callable[[str], None], *, kind: str = MODEL) -> None:
        """Have a folder that is no table, such as a model, written aside.

        Publications of several outputs may replace it, so it has a lease and a journal of its own, which are
        held until the publication ends.

        Parameters
        ----------
        path : str
            Where it goes.
        write : callable
            Writes it to the folder of the given name, which is not there yet.
        kind : str
            What the folder is, as the summary's ``paths`` call it.

        Raises
        ------
        OutputHeldError
            If another run does not finish replacing it.
        """
        place = self._qualify(path)
        if self._lease and place != self._lease.place:
            self._share(place, self._lease)
        self.claim_folder(path, kind)
        staged = self._begin(place)
        write(staged.staging)
        mark(self._files(staged.staging), staged.staging, kind, self._run_id)

    def stage_text(self, path: str, text: str, known: re.Pattern[str]) -> None:
        """Write a text file, such as a report, aside.

        Parameters
        ----------
        path, text : str
        known : re.Pattern
            Found in every such text of this program: no other one is replaced.

        Raises
        ------
        ConfigurationError
            If it cannot be written there, or something else is there.
        """
        self.claim_text(path, known)
        place = self._qualify(path)
        files = self._files(place)
        staged = self._begin(place)
        staged.is_folder, staged.text = False, text
        files.write_text(staged.staging, text)

    def _share(self, place: str, home: Lease) -> None:
        """Take the lease of a folder that other outputs' publications replace too."""
        self._shared[place] = Journal(self._spark, place)
        self._note("staging")
        lease = self._held.enter_context(Lease(self._spark, place, self._run_id, wait=SHARED_WAIT))
        self._leases.append(lease)
        before = {place: self._files(place).exists(place)}
        self._shared[place].write(Entry(self._run_id, "staging", before, home=home.place))

    def _begin(self, place: str, pointer: Pointer | None = None) -> Staged:
        files = self._files(place)
        made = files.missing_above(place)
        staged = Staged(
            place, staging_of(place, self._run_id), aside_of(place, self._run_id), files.exists(place), made
        )
        staged.pointer = pointer
        self._staged.append(staged)
        self._note("staging")
        files.make_folder(parent(place))
        return staged

    def _note(self, state: State) -> None:
        if self._journal:
            own = (staged for staged in self._staged if staged.leaf not in self._shared)
            before = {s.leaf: s.had_old if s.pointer is None else s.pointer.before for s in own}
            self._journal.write(Entry(self._run_id, state, before, list(self._shared)))

    def _check(self) -> None:
        for lease in self._leases:
            lease.check()

    def _is_mine(self) -> bool:
        """Whether no other run has taken over, and put right what this one has changed."""
        return all(lease.is_mine() for lease in self._leases)

    def publish(self) -> None:
        """Put every staged folder in its place, in the order they were staged; commit, the first one last.

        Raises
        ------
        TransientError
            If a folder cannot be renamed, or a table was changed meanwhile; the old tables are back then.
        OutputHeldError
            If another run has taken over; it has put everything back.
        """
        self._check()
        self._note("publishing")
        try:
            for staged in self._staged:
                self._check()
                if staged.is_folder:
                    self._put_folder(staged)
                elif staged.text is not None:
                    self._put_text(staged, staged.text)
            for staged in reversed(self._staged):
                self._check()
                if staged.pointer:
                    staged.pointer.set()
                if staged.commit:
                    staged.commit.commit(staged.staging)
            self._check()
            self._note("published")
        except OSError as error:
            self._roll_back()
            if error.errno in _LASTING:
                raise ConfigurationError(f"nothing was published, the old output stands: {error}") from error
            raise TransientError(f"nothing was published, the old output stands: {error}") from error
        except BaseException:
            self._roll_back()
            raise
        self._forget_old()

    def _forget_old(self) -> None:
        for staged in self._staged:
            files = self._files(staged.leaf)
            staged.moved_aside = staged.in_place = False
            if staged.pointer:
                staged.pointer.forget_old_runs()
            elif staged.is_folder or staged.text is not None:
                files.delete(staged.aside)
            else:
                files.delete(staged.staging)
                files.delete_empty(staged.made)
        self._staged.clear()

    def _put_folder(self, staged: Staged) -> None:
        files = self._files(staged.leaf)
        if files.exists(staged.leaf):
            files.move(staged.leaf, staged.aside)
            staged.moved_aside = True
            self._check()
        files.move(staged.staging, staged.leaf)
        staged.in_place = True

    def _put_text(self, staged: Staged, text: str) -> None:
        """Replace a file in one step, after a copy of the old one has been kept aside.

        A run that dies in between is undone like a folder: what lies aside goes back to its place.
        """
        files = self._files(staged.leaf)
        if files.exists(staged.leaf):
            files.write_text(staged.aside, files.read_text(staged.leaf))
            staged.moved_aside = True
        if files.renames:
            files.replace(staged.staging, staged.leaf)
        else:
            files.write_text(staged.leaf, text)
            files.delete(staged.staging)
        staged.in_place = True

    def _roll_back(self) -> None:
        if not self._is_mine():
            for staged in self._staged:
                staged.moved_aside = staged.in_place = False
            return
        for staged in self._staged:
            if staged.commit:
                staged.commit.undo()
            if staged.pointer:
                staged.pointer.undo()
        for staged in reversed(self._staged):
            files = self._files(staged.leaf)
            if staged.in_place:
                files.move(staged.leaf, staged.staging)
                staged.in_place = False
            elif staged.text is not None:  # of a file there is a copy aside; the file itself is in its place
                files.delete(staged.aside)
                staged.moved_aside = False
            if staged.moved_aside:
                files.move(staged.aside, staged.leaf)
                staged.moved_aside = False

    def _files(self, path: str) -> Files:
        return Files(self._spark, path)

    def _qualify(self, path: str) -> str:
        return self._files(path).qualify(path)

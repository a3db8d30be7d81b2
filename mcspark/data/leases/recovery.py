"""What a run that died has left beside a leaf is put right by the next one that holds its lease.

A publication is undone as long as its journal does not say that all folders are in place; then it is
finished. Journals are not trusted: a folder is only touched where the dead run's own names or its mark show
that it was there.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog
from pyspark.sql import SparkSession

from mcspark.data.formats.pointer import RUNS, point, pointed_run
from mcspark.data.leases.journal import Entry, Journal, aside_of, staging_of
from mcspark.data.leases.ownership import MARK
from mcspark.errors import ConfigurationError
from mcspark.runtime.files.files import Files, beside, leaf, parent

log = structlog.get_logger(__name__)


def recover(spark: SparkSession, place: str, settle_shared: Callable[[str], None]) -> None:
    """Undo or finish what a dead run has begun at a leaf; the caller holds its lease.

    Parameters
    ----------
    spark : SparkSession
    place : str
    settle_shared : callable
        Does the same for a folder with a lease of its own.
    """
    journal = Journal(spark, place)
    entry = journal.read()
    if entry:
        # In this order: the journal of a shared folder asks this one how far the run came.
        for shared in entry.shared:
            settle_shared(shared)
        for folder, before in entry.before.items():
            _settle(spark, folder, before, entry.run_id, is_undone=_is_undone(spark, folder, entry))
    journal.remove()
    mend(Files(spark, place), place)
    _sweep(Files(spark, place), place)


def _is_undone(spark: SparkSession, folder: str, entry: Entry) -> bool:
    if not entry.home:
        return entry.state != "published"
    try:
        home = Journal(spark, entry.home).read()
    except ConfigurationError:
        home = None
    if home is None or home.run_id != entry.run_id:  # somebody has removed it
        return not Files(spark, folder).exists(folder)
    return home.state != "published"


def _settle(spark: SparkSession, place: str, before: bool | str, run_id: str, *, is_undone: bool) -> None:
    files = Files(spark, place)
    if isinstance(before, str):
        _settle_pointer(files, place, before, run_id, is_undone=is_undone)
        return
    staging, aside = staging_of(place, run_id), aside_of(place, run_id)
    if is_undone and files.exists(aside):
        if files.exists(place):
            files.delete(staging)
            files.move(place, staging)  # in one step: no reader finds half of it
        files.move(aside, place)
        log.warning("a run died while publishing: its old output is back", output=place)
    elif is_undone and not before and not files.exists(staging) and _is_of(files, place, run_id):
        files.move(place, staging)
        log.warning("a run died while publishing: its new output is withdrawn", output=place)
    for leftover in (staging, aside):
        files.delete(leftover)
    _sweep(files, place)


def _settle_pointer(files: Files, place: str, before: str, run_id: str, *, is_undone: bool) -> None:
    if is_undone and pointed_run(files, place) == run_id:
        point(files, place, before)
        log.warning("a run died while publishing: the run before is in force again", output=place)
    if is_undone:
        files.delete(f"{place}/{RUNS}/{run_id}")


def _sweep(files: Files, place: str) -> None:
    """Remove what texts that were cut short have left: of the journal, and of files that were staged."""
    for name in files.names(parent(place)):
        if name.startswith(f"..{leaf(place)}.") and ".writing-" in name:
            files.delete(beside(place, name))


def _is_of(files: Files, place: str, run_id: str) -> bool:
    """Whether a folder, or a file, was made by the run: its mark, or its text, says so."""
    for text in (f"{place}/{MARK}", place):
        try:
            return run_id in files.read_text(text)
        except (OSError, ValueError):
            continue
    return False


def is_torn(files: Files, place: str) -> bool:
    """Whether a folder is missing that a run has moved aside."""
    if files.exists(place):
        return False
    return any(name.startswith(f".{leaf(place)}.old-") for name in files.names(parent(place)))


def mend(files: Files, place: str) -> None:
    """Put right what a run has left beside a leaf of which no journal tells; the caller holds its lease."""
    names = files.names(parent(place))
    for old in (name for name in names if name.startswith(f".{leaf(place)}.old-")):
        if files.exists(place):
            files.delete(beside(place, old))
        else:
            log.warning("a run died while publishing: its old output is back", output=place)
            files.move(beside(place, old), place)
    for left in (name for name in names if name.startswith(f".{leaf(place)}.staging-")):
        log.info("removed what a dead run had staged", folder=left)
        files.delete(beside(place, left))

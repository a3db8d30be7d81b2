"""What a publication is about to change, written down first, so that the next run can undo half of it.

A run that is killed between two renames leaves some folders new and others old. The journal of a leaf is
``.<leaf>.publication`` beside it: it names the run, how far it is and, for every folder of the publication,
whether an old one was there. It is there while a publication is; a run that finds it has taken the lease of a
dead one, puts every old folder back, and removes what was staged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import structlog
from pyspark.sql import SparkSession

from mcspark.identifiers import check_run_id
from mcspark.runtime.files import Files, beside, leaf
from mcspark.runtime.untrusted import read_json

log = structlog.get_logger(__name__)

State = Literal["staging", "publishing", "published"]

_LIMIT = 100_000


def staging_of(place: str, run_id: str) -> str:
    """Where a run writes the new folder; Spark's readers ignore such names."""
    return beside(place, f".{leaf(place)}.staging-{run_id}")


def aside_of(place: str, run_id: str) -> str:
    """Where a run keeps the old folder until all new ones are in place."""
    return beside(place, f".{leaf(place)}.old-{run_id}")


@dataclass(frozen=True)
class Entry:
    """One run's publication as its journal has it.

    Parameters
    ----------
    run_id : str
    state : {'staging', 'publishing', 'published'}
        Folders are written aside; being renamed; all in place, with old ones still to be removed.
    had_old : mapping of str to bool
        For each folder, whether there was one before.
    """

    run_id: str
    state: State
    had_old: Mapping[str, bool]


class Journal:
    """The journal of one leaf; the caller holds its lease.

    Parameters
    ----------
    spark : SparkSession
    place : str
        The leaf.
    """

    def __init__(self, spark: SparkSession, place: str) -> None:
        self._spark = spark
        self._files = Files(spark, place)
        home = self._files.qualify(place)
        self._file = beside(home, f".{leaf(home)}.publication")

    def write(self, entry: Entry) -> None:
        """Write the entry in place of the one before."""
        self._files.write_text(self._file, json.dumps(vars(entry) | {"had_old": dict(entry.had_old)}))

    def remove(self) -> None:
        """The publication is whole, or given up."""
        self._files.delete(self._file)

    def undo(self, places: Callable[[str], Iterable[str]]) -> None:
        """Undo the publication of a run that died, as far as it is about the caller's own folders.

        Parameters
        ----------
        places : callable
            The folders that a run of the given id may have published here. What else the journal names is
            not touched: the file is not trusted.
        """
        entry = self._read()
        if entry is None:
            return
        for place in places(entry.run_id):
            if place in entry.had_old:
                self._undo(place, entry)
        self.remove()

    def _undo(self, place: str, entry: Entry) -> None:
        files = Files(self._spark, place)
        staging, aside = staging_of(place, entry.run_id), aside_of(place, entry.run_id)
        if entry.state == "publishing":
            if files.exists(aside):
                files.delete(place)
                files.move(aside, place)
                log.warning("a run died while publishing: its old output is back", output=place)
            elif not entry.had_old[place] and not files.exists(staging):
                files.delete(place)
                log.warning("a run died while publishing: its new output is withdrawn", output=place)
        for leftover in (staging, aside):
            files.delete(leftover)

    def _read(self) -> Entry | None:
        try:
            text = self._files.read_text(self._file, limit=_LIMIT)
            return parse_entry(text)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            log.warning("the journal of a dead run cannot be read", journal=self._file, reason=str(error))
            return None


def parse_entry(text: str) -> Entry:
    """The entry in a text; whatever the text is, nothing but ``ValueError`` is raised."""
    plain = read_json(text)
    if not isinstance(plain, dict) or set(plain) != {"run_id", "state", "had_old"}:
        raise ValueError("it is no entry of a journal")
    run_id, state, had_old = plain["run_id"], plain["state"], plain["had_old"]
    if not isinstance(run_id, str) or state not in get_args(State) or not isinstance(had_old, dict):
        raise ValueError("its parts are of the wrong type")
    if not all(isinstance(had, bool) for had in had_old.values()):
        raise ValueError("it does not say which folders there were")
    return Entry(check_run_id(run_id), state, had_old)

"""What a publication is about to change, written down first, so that the next run can undo half of it.

A run that is killed between two renames leaves some folders new and others old. The journal of a leaf is
``.<leaf>.publication`` beside it: it names the run, how far it is and, for every folder of the publication,
what was there before. A folder that publications of several outputs replace, such as a model, has a lease and
a journal of its own, which names the output whose journal tells how far the run is. See
:mod:`mcspark.data.leases.recovery` for what is made of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, get_args

import structlog
from pyspark.sql import SparkSession

from mcspark.identifiers import check_run_id
from mcspark.runtime.files.files import Files, beside, leaf
from mcspark.runtime.files.untrusted import read_json

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
    before : mapping of str to (bool or str)
        For each folder, whether there was one before; on an object store, the run that its pointer named, or
        an empty text.
    shared : sequence of str
        Folders of the publication that have a journal of their own.
    home : str
        In such a journal, the leaf whose journal tells the state.
    """

    run_id: str
    state: State
    before: Mapping[str, bool | str] = field(default_factory=dict)
    shared: Sequence[str] = ()
    home: str = ""


class Journal:
    """The journal of one leaf; who writes it holds its lease.

    Parameters
    ----------
    spark : SparkSession
    place : str
        The leaf.
    """

    def __init__(self, spark: SparkSession, place: str) -> None:
        self._files = Files(spark, place)
        home = self._files.qualify(place)
        self._file = beside(home, f".{leaf(home)}.publication")

    def write(self, entry: Entry) -> None:
        """Write the entry in place of the one before."""
        plain = asdict(entry) | {"before": dict(entry.before), "shared": list(entry.shared)}
        self._files.write_text(self._file, json.dumps(plain))

    def remove(self) -> None:
        """The publication is whole, or given up."""
        self._files.delete(self._file)

    def exists(self) -> bool:
        """Whether a run publishes here, or has died over it."""
        return self._files.exists(self._file)

    def read(self) -> Entry | None:
        """The entry; None if there is none, or none that can be read."""
        try:
            return parse_entry(self._files.read_text(self._file, limit=_LIMIT))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            log.warning("the journal of a dead run cannot be read", journal=self._file, reason=str(error))
            return None


def parse_entry(text: str) -> Entry:
    """The entry in a text; whatever the text is, nothing but ``ValueError`` is raised."""
    plain = read_json(text)
    if not isinstance(plain, dict) or set(plain) != {"run_id", "state", "before", "shared", "home"}:
        raise ValueError("it is no entry of a journal")
    run_id, state, before, shared, home = (plain[k] for k in ("run_id", "state", "before", "shared", "home"))
    if not isinstance(run_id, str) or state not in get_args(State) or not isinstance(home, str):
        raise ValueError("its parts are of the wrong type")
    if not isinstance(shared, list) or not all(isinstance(place, str) and place for place in shared):
        raise ValueError("its shared folders are no paths")
    if not isinstance(before, dict) or not all(isinstance(old, bool | str) for old in before.values()):
        raise ValueError("it does not say what was there")
    for old in before.values():
        if isinstance(old, str) and old:
            check_run_id(old)
    return Entry(check_run_id(run_id), state, before, tuple(shared), home)

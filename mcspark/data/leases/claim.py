"""What the mark of a run says: who it is, and which part of a table it claims."""

from __future__ import annotations

from dataclasses import dataclass

from mcspark.identifiers import check_run_id
from mcspark.runtime.files.files import leaf, parent
from mcspark.runtime.files.untrusted import read_json
from mcspark.runtime.process.processes import Process


@dataclass(frozen=True)
class Claim:
    """What a mark says.

    Parameters
    ----------
    run_id : str
    part : str
        Partition folders below the table, such as ``ds=2026-11-26``; empty for the whole table.
    holds : bool
        Whether its run has looked at the other marks, and holds the lease.
    process : Process
    """

    run_id: str
    part: str
    holds: bool
    process: Process


@dataclass(frozen=True)
class Mark:
    """The mark of another run.

    Parameters
    ----------
    file : str
    claim : Claim or None
        None if it cannot be read.
    age : float
        Seconds since it was renewed.
    """

    file: str
    claim: Claim | None
    age: float

    def is_void(self, limit: float) -> bool:
        """Whether its run is dead: its process has ended, or where that is unknown, it is too old."""
        gone = self.claim.process.is_gone() if self.claim else None
        return self.age > limit if gone is None else gone

    def excludes(self, part: str) -> bool:
        """Whether no other run may hold the part; a mark that cannot be read may mean the whole table."""
        return self.claim is None or within(part, self.claim.part) or within(self.claim.part, part)

    @property
    def who(self) -> str:
        """Its run, for messages."""
        if self.claim is None:
            return f"a run that has left an unreadable lease {self.file}"
        process = self.claim.process
        return f"run {self.claim.run_id} ({process.host}, process {process.pid})"


def parse_claim(text: str) -> Claim:
    """The claim in a text; whatever the text is, nothing but ``ValueError`` is raised."""
    try:
        plain = read_json(text)
        process = Process(**plain.pop("process"))
        claim = Claim(process=process, **plain)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError("it is no lease") from error
    texts = (claim.run_id, claim.part, process.host, process.table)
    if not all(isinstance(text, str) for text in texts) or type(claim.holds) is not bool:
        raise ValueError("its parts are of the wrong type")
    numbers = ((process.pid, range(1, 2**31)), (process.started, range(2**63)))
    if not all(type(number) is int and number in known for number, known in numbers):
        raise ValueError("it names no process")
    if any(folder in ("..", "") for folder in claim.part.split("/")) and claim.part:
        raise ValueError("it names no part of a table")
    check_run_id(claim.run_id)
    return claim


def table_and_part(place: str) -> tuple[str, str]:
    """``/out/ds=1/hour=2`` is the part ``ds=1/hour=2`` of the table ``/out``."""
    folders: list[str] = []
    while "=" in leaf(place):
        folders.insert(0, leaf(place))
        place = parent(place)
    return place, "/".join(folders)


def within(part: str, other: str) -> bool:
    """Whether a part of the table lies in another one, or is it."""
    return not other or part == other or part.startswith(f"{other}/")

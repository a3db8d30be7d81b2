"""The person columns of the ACS public use files: their names by year and their types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """How a column is typed, whatever the file's own type."""

    code = "string"
    """An identifier: a string whose leading zeros count."""
    integer = "bigint"
    """A number, or a category that the Census Bureau writes as a number."""


@dataclass(frozen=True)
class PersonColumn:
    """One column under its canonical name, which is the name it has in the newest files.

    Parameters
    ----------
    name : str
        Canonical name.
    kind : Kind
        Its type in everything that is written.
    former : tuple of (str, int)
        Earlier names, each with the last survey year that used it.
    recoded : bool
        Whether the codes changed with the name, so that files of both names cannot be mixed.
    """

    name: str
    kind: Kind = Kind.integer
    former: tuple[tuple[str, int], ...] = ()
    recoded: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Every name the column may have in a file, newest first."""
        return (self.name, *(name for name, _ in self.former))

    def describe(self) -> str:
        """The name, with the earlier ones: ``STATE (ST until 2022)``."""
        earlier = ", ".join(f"{name} until {year}" for name, year in self.former)
        return f"{self.name} ({earlier})" if earlier else self.name


_PLAIN = (
    "PWGTP", "AGEP", "SEX", "RAC1P", "SCHL", "OCCP", "COW", "MAR", "WKHP", "ESR", "CIT", "DIS", "HISP",
    "NATIVITY", "MIL", "INDP", "HICOV", "ESP", "MIG", "POBP", "POVPIP", "PINCP", "JWMNP",
)  # fmt: skip

COLUMNS: Mapping[str, PersonColumn] = {
    column.name: column
    for column in (
        PersonColumn("SERIALNO", Kind.code),
        PersonColumn("SPORDER"),
        PersonColumn("STATE", Kind.code, former=(("ST", 2022),)),
        PersonColumn("PUMA", Kind.code),
        PersonColumn("POWPUMA", Kind.code),
        PersonColumn("RELSHIPP", former=(("RELP", 2018),), recoded=True),
        PersonColumn("JWTRNS", former=(("JWTR", 2018),), recoded=True),
        *(PersonColumn(name) for name in _PLAIN),
    )
}
"""The columns that mcspark reads, by canonical name. All others are ignored."""

KEY = ("SERIALNO", "SPORDER")
"""Person key: the household's serial number, which begins with the survey year, and the person's place."""

WEIGHT = "PWGTP"

GROUP_ATTRIBUTES = ("RAC1P", "SEX", "AGEP", "SCHL", "OCCP", "PUMA", "STATE")
"""Attributes that every file must have: race, sex, age, education, occupation, area, state."""

GROUPS = (
    "[{column: RAC1P}, {column: SEX}, {column: AGEP, bins: [0, 5, 18, 25, 35, 45, 65, 85, 100, 120]}, "
    "{column: SCHL, bins: [0, 16, 18, 20, 21, 22, 25]}, {column: OCCP, divide_by: 100}]"
)
"""The paper's groups, as the value of ``groups.columns``."""

FURTHER_ATTRIBUTES = (
    "COW", "MAR", "WKHP", "ESR", "CIT", "DIS", "HISP", "NATIVITY", "MIL", "INDP", "HICOV", "POBP",
    "RELSHIPP", "JWTRNS",
)  # fmt: skip
"""Attributes that are carried along where the files have them."""


def locate(header: Iterable[str]) -> dict[str, str]:
    """Name in the file of each known column that a file has.

    Parameters
    ----------
    header : iterable of str
        Column names of the file.

    Returns
    -------
    dict of str to str
        Canonical name to the file's own name.
    """
    present = set(header)
    found = ((column.name, [n for n in column.names if n in present]) for column in COLUMNS.values())
    return {name: spelled[0] for name, spelled in found if spelled}


def disagreements(located: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Columns that some files lack, or hold under another code list, each with the reason.

    Parameters
    ----------
    located : sequence of dict
        What :func:`locate` found, one entry a file.
    """
    reasons: dict[str, str] = {}
    for name, column in COLUMNS.items():
        spelled = {found.get(name) for found in located}
        if spelled == {None}:
            reasons[name] = "no file has it"
        elif None in spelled:
            lacking = sum(name not in found for found in located)
            reasons[name] = f"{lacking} of {len(located)} files lack it"
        elif column.recoded and len(spelled) > 1:
            reasons[name] = f"the files mix the code lists of {' and '.join(sorted(map(str, spelled)))}"
    return reasons

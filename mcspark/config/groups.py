"""The groups that scores are to be calibrated in."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from mcspark.config.codebook import Entry, Labels, Words, check_codebook, read_codebook
from mcspark.config.section import AsTuple, Column, Section, repeated
from mcspark.identifiers import folded
from mcspark.predicates import check_predicate

MAX_GROUP_NAME = 200


def _check_bins(bins: tuple[float, ...]) -> tuple[float, ...]:
    if len(bins) < 2:
        raise ValueError("needs at least two edges, such as [0, 18, 65]")
    for low, high in pairwise(bins):
        if not low < high:
            raise ValueError(f"must be strictly increasing, but {high:g} follows {low:g}; sort the edges")
    return bins


def _check_name(name: str) -> str:
    if not name.strip() or len(name) > MAX_GROUP_NAME or not name.isprintable():
        raise ValueError(f"must be 1 to {MAX_GROUP_NAME} printable characters; rename the group")
    return name


def _check_where(where: str) -> str:
    check_predicate(where)
    return where


class Cut(Section):
    """A column and its categories: its values, bins of them, or values of floor(column / divide_by)."""

    column: Column = Field(
        description="Column of the one table that has it, in whatever capitals; not the label. Its values "
        "are categories: decimals by their shortest text, booleans as true and false."
    )
    bins: Annotated[tuple[float, ...], AsTuple, AfterValidator(_check_bins)] | None = Field(
        None, description="Edges; bins are closed on the left and open on the right."
    )
    divide_by: float | None = Field(
        None, gt=0, description="Group by floor(column / divide_by), in decimals: 0.6 is six times 0.1."
    )

    @field_validator("divide_by")
    @classmethod
    def _one_cut(cls, divide_by: float | None, info: ValidationInfo) -> float | None:
        if divide_by is not None and info.data.get("bins") is not None:
            raise ValueError("does not go with bins; give one of them")
        return divide_by


class GroupColumn(Cut):
    """One group a value of a column, or a bin of it, or a value of floor(column / divide_by)."""

    title: Words | None = Field(
        None, description="What people read for the column; the codebook's, or the column's name if null."
    )
    labels: Labels | None = Field(
        None,
        description="What people read for a value, such as `1: White`; of bins `'[18,25)': 18 to 24`, of "
        "divide_by for the quotient. The codebook has the others. Reports, pictures and explanations use "
        "them; the data keep the ids.",
    )


class Predicate(Section):
    """A group defined by a Spark SQL condition over the attributes."""

    name: Annotated[str, AfterValidator(_check_name)] = Field(description="Name of the group.")
    where: Annotated[str, AfterValidator(_check_where)] = Field(
        description="Spark SQL boolean over the attribute columns; null counts as no member, and so "
        "does what cannot be computed: x / 0, a text that is no number, a whole number too large."
    )

    @property
    def sql(self) -> str:
        """The condition as Spark shall run it: rendered from the checked syntax tree."""
        return check_predicate(self.where)[0]

    @property
    def columns(self) -> frozenset[str]:
        """The columns it reads, spelt as in the condition."""
        return check_predicate(self.where)[1]


class Groups(Section):
    """Which groups there are."""

    codebook: Annotated[str, AfterValidator(check_codebook)] | None = Field(
        None,
        description="Titles and labels of columns: `acs` for the American Community Survey, or a YAML file "
        "on this machine, `COLUMN: {title: …, labels: {value: …}}`, for a divided column `COLUMN/100`.",
    )
    min_share: float = Field(
        0.01,
        ge=0,
        lt=1,
        description="A category is a group above this share of the labelled rows; at most 4,096 groups, and "
        "at least one.",
    )
    columns: Annotated[tuple[GroupColumn, ...], AsTuple] = Field((), description="Groups by column.")
    predicates: Annotated[tuple[Predicate, ...], AsTuple] = Field((), description="Groups by condition.")
    intersections: int = Field(
        1, ge=1, le=2, description="2 adds every pair of groups that passes min_share."
    )

    @field_validator("columns")
    @classmethod
    def _each_column_once(cls, columns: tuple[GroupColumn, ...]) -> tuple[GroupColumn, ...]:
        if again := repeated(c.column for c in columns):
            raise ValueError(f"names {again[0]!r} twice; write a second cut of a column as predicates")
        return columns

    @field_validator("predicates")
    @classmethod
    def _names_unique(cls, predicates: tuple[Predicate, ...], info: ValidationInfo) -> tuple[Predicate, ...]:
        if again := repeated(p.name for p in predicates):
            raise ValueError(f"has two groups named {again[0]!r}; give each its own name")
        columns = {folded(c.column) for c in info.data.get("columns", ())}
        if taken := [p.name for p in predicates if folded(p.name) in columns]:
            raise ValueError(f"names a group {taken[0]!r} like a group column; rename it")
        return predicates

    def words_of(self, column: GroupColumn) -> Entry:
        """Title and labels of a column: its own before those of the codebook."""
        by = f"/{column.divide_by:g}" if column.divide_by is not None else ""
        found = read_codebook(self.codebook).get(f"{column.column}{by}") if self.codebook else None
        known = found or Entry(title=None, labels=None)
        labels = {**(known.labels or {}), **(column.labels or {})}
        return Entry(title=column.title or known.title, labels=labels or None)

    @property
    def attribute_columns(self) -> tuple[str, ...]:
        """The attribute columns that the groups read, each once: group columns first, then predicates'."""
        names = [c.column for c in self.columns]
        for predicate in self.predicates:
            names.extend(sorted(predicate.columns))
        seen: dict[str, str] = {}
        for name in names:
            seen.setdefault(folded(name), name)
        return tuple(seen.values())

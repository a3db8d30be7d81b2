"""Segments: rows that share the values of some columns, with a calibrator of their own; the others share one.

The columns of a segment are families of groups. Together with the groups of all calibrators they make one
signature, so that calibrators by segment are one calibrator of that signature, scored like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mcspark.core.baselines.method import SignatureCalibrator
from mcspark.core.cells.groups import Category, Family, FittedGroups
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.model.additive import BoolArray
from mcspark.identifiers import MAX_SEGMENT_COLUMNS

MAX_SEGMENTS = 1000
"""Most segments that have a calibrator of their own."""


@dataclass(frozen=True, eq=False)
class SegmentTable:
    """Which segments there are, in their order.

    Parameters
    ----------
    families : tuple of Family
        Of the kind ``value``, one a column; their categories are the values of the segments.
    codes : ndarray of int, shape (K, number of families)
        Each segment's values, as places from 1 on among the categories.
    """

    families: tuple[Family, ...]
    codes: IntArray

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of_values(cls, columns: Sequence[str], values: Sequence[Sequence[Category]]) -> SegmentTable:
        """The table of segments with these values, none of them missing."""
        families, codes = [], []
        for i, column in enumerate(columns):
            found = [value[i] for value in values]
            categories = tuple(sorted(set(found)))
            places = {category: place for place, category in enumerate(categories, start=1)}
            families.append(Family("value", column, categories, columns=(column,)))
            codes.append([places[value] for value in found])
        shape = (len(columns), len(values))
        return cls(tuple(families), np.array(codes, dtype=np.int64).reshape(shape).T)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that make a segment."""
        return tuple(family.column for family in self.families)

    def values(self, number: int) -> tuple[Category, ...]:
        """The values of a segment, by column."""
        return tuple(
            f.categories[code - 1] for f, code in zip(self.families, self.codes[number], strict=True)
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What people read, ``country=de & product=loan``; with the number behind it where two are alike."""
        every = range(len(self))
        found = [" & ".join(map(Family.group_name, self.families, self.values(i))) for i in every]
        count = Counter(found)
        return tuple(f"{name} (segment {i})" if count[name] > 1 else name for i, name in enumerate(found))

    def take(self, numbers: Sequence[int]) -> SegmentTable:
        """These segments alone."""
        return SegmentTable.of_values(self.columns, [self.values(number) for number in numbers])

    def keys(self, codes: IntArray) -> IntArray:
        """One number for the codes of each row, shape (N, number of families): no two have the same."""
        key = np.zeros(len(codes), dtype=np.int64)
        for family, code in zip(self.families, codes.T, strict=True):
            key = key * (len(family.categories) + 1) + code
        return key

    def numbers(self, keys: IntArray) -> IntArray:
        """The segment of each of :meth:`keys`; -1 where there is none."""
        known, order = self._sorted
        if not len(known):
            return np.full(len(keys), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[at] == keys, order[at], -1)

    @cached_property
    def _sorted(self) -> tuple[IntArray, IntArray]:
        keys = self.keys(self.codes)
        order = np.argsort(keys)
        return keys[order], order

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {"families": FittedGroups(self.families).to_dict()["families"], "codes": self.codes.tolist()}

    @classmethod
    def from_dict(cls, plain: Any) -> SegmentTable:
        """Inverse of :meth:`to_dict`; the input is untrusted and every part of it is checked.

        Raises
        ------
        ValueError
            If it is not a table of segments.
        """
        given = plain["families"]
        if not isinstance(given, list) or not 1 <= len(given) <= MAX_SEGMENT_COLUMNS:
            raise ValueError(f"segments have 1 to {MAX_SEGMENT_COLUMNS} columns")
        none: dict[str, Any] = {"pairs": [], "dropped": []}
        families = tuple(FittedGroups.from_dict({"families": [one], **none}).families[0] for one in given)
        columns = [family.column for family in families]
        if len(set(columns)) < len(columns):
            raise ValueError("two columns of a segment have one name")
        if any(family.kind != "value" or family.columns != (family.column,) for family in families):
            raise ValueError("a segment is made of values alone")
        rows = plain["codes"]
        if not isinstance(rows, list) or not 1 <= len(rows) <= MAX_SEGMENTS:
            raise ValueError(f"there are 1 to {MAX_SEGMENTS} segments")
        if not all(isinstance(row, list) and len(row) == len(families) for row in rows):
            raise ValueError("a segment has one value a column")
        if not all(type(code) is int for row in rows for code in row):
            raise ValueError("a value of a segment is named by a whole number")
        codes = np.array(rows, dtype=np.int64)
        sizes = np.array([len(family.categories) for family in families])
        if not ((codes >= 1) & (codes <= sizes)).all():
            raise ValueError("a segment has a value that is none of its column's")
        table = cls(families, codes)
        if len(np.unique(table.keys(codes))) < len(codes):
            raise ValueError("two segments have the same values")
        return table


@dataclass(frozen=True)
class Part:
    """A calibrator with the groups that it is about.

    Parameters
    ----------
    groups : FittedGroups
    calibrator : SignatureCalibrator
    """

    groups: FittedGroups
    calibrator: SignatureCalibrator


def with_columns(
    families: tuple[Family, ...], columns: Sequence[str]
) -> tuple[tuple[Family, ...], list[int]]:
    """Families that hold the values of these columns too, and the place of each column's among them."""
    found, places = list(families), []
    for column in columns:
        same = [i for i, f in enumerate(found) if f.kind == "value" and f.column == column]
        if not same:
            found.append(Family("value", column, columns=(column,)))
        places.append(same[0] if same else len(found) - 1)
    return tuple(found), places


def union(table: SegmentTable, groups: Sequence[FittedGroups]) -> tuple[FittedGroups, list[int]]:
    """Families with the categories of all these groups and of all segments, and the places of the segments'.

    Parameters
    ----------
    table : SegmentTable
    groups : sequence of FittedGroups
        Of the same definitions; what the first has seen is kept.

    Raises
    ------
    ValueError
        If they are of different definitions.
    """
    first = groups[0].families
    for other in groups:
        if [f.definition for f in other.families] != [f.definition for f in first]:
            raise ValueError("the calibrators of the segments are about groups of other definitions")
    families, places = with_columns(first, table.columns)
    categories: list[set[Category]] = [set(family.categories) for family in families]
    for other in groups:
        for known, family in zip(categories, other.families, strict=False):
            known.update(family.categories)
    for place, family in zip(places, table.families, strict=True):
        categories[place].update(family.categories)
    if any(len({type(category) for category in known}) > 1 for known in categories):
        raise ValueError("the categories of a family of groups are of different types")
    every = zip(families, categories, strict=True)
    return FittedGroups(tuple(replace(f, categories=tuple(sorted(known))) for f, known in every)), places


class SegmentedCalibrator:
    """Calibrators by segment as one calibrator; see the head of this module.

    Parameters
    ----------
    table : SegmentTable
    pooled : Part
        For rows of no segment.
    parts : sequence of Part
        One a segment.

    Attributes
    ----------
    groups : FittedGroups
        What the membership of :meth:`apply_signatures` is about.
    """

    def __init__(self, table: SegmentTable, pooled: Part, parts: Sequence[Part]) -> None:
        if len(parts) != len(table):
            raise ValueError(f"{len(parts)} calibrators for {len(table)} segments")
        self.table, self.pooled, self.parts = table, pooled, tuple(parts)
        self.groups, self._places = union(table, [pooled.groups, *(part.groups for part in parts)])
        sizes = [len(family.categories) for family in self.groups.families]
        self._starts = np.cumsum([0, *sizes])
        self._columns = [self._columns_of(part.groups) for part in (*parts, pooled)]  # the last is of -1
        # Of each value of each column of a segment, in the order of its codes.
        self._values = [
            self._places_of(place, family.categories)
            for place, family in zip(self._places, table.families, strict=True)
        ]

    def _columns_of(self, groups: FittedGroups) -> IntArray:
        own = [self._places_of(i, family.categories) for i, family in enumerate(groups.families)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *own])

    def _places_of(self, family: int, categories: Sequence[Category]) -> IntArray:
        """Columns of the membership of these categories of a family."""
        every = self.groups.families[family].categories
        places = {category: i for i, category in enumerate(every, start=self._starts[family])}
        return np.array([places[category] for category in categories], dtype=np.int64)

    def segments_of(self, membership: BoolArray) -> IntArray:
        """Number of the segment of each signature, -1 for that of no segment; shape (S,)."""
        codes = np.zeros((len(membership), len(self._places)), dtype=np.int64)
        for i, columns in enumerate(self._values):
            inside, code = np.nonzero(membership[:, columns])
            codes[inside, i] = code + 1
        return self.table.numbers(self.table.keys(codes))

    def own_membership(self, number: int, membership: BoolArray) -> BoolArray:
        """Membership in the groups of one segment's calibrator; -1 for that of the rows of no segment."""
        return self._part(number).groups.with_intersections(membership[:, self._columns[number]])

    def _part(self, number: int) -> Part:
        return self.parts[number] if number >= 0 else self.pooled

    def part_of(self, member: Any) -> tuple[Part, BoolArray]:
        """The calibrator of one signature (a row of bool), and the membership in its groups, shape (G,)."""
        number = int(self.segments_of(member[None])[0])
        return self._part(number), self.own_membership(number, member[None])[0]

    def apply_signatures(
        self, score: FloatArray, signature: IntArray, membership: BoolArray, /
    ) -> FloatArray:
        """Calibrated scores; see :class:`mcspark.core.baselines.method.SignatureCalibrator`."""
        segment = self.segments_of(membership)[signature]
        result = np.empty(len(score))
        if not len(score):
            return result
        order = np.argsort(segment, kind="stable")
        numbers, first = np.unique(segment[order], return_index=True)
        for number, rows in zip(numbers.tolist(), np.split(order, first[1:]), strict=True):
            used, own = np.unique(signature[rows], return_inverse=True)
            member = self.own_membership(number, membership[used])
            result[rows] = self._part(number).calibrator.apply_signatures(
                score[rows], own.reshape(-1), member
            )
        return result

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form, to be compared; a saved model has a file for each segment."""
        parts = [part.calibrator.to_dict() for part in self.parts]
        return {"table": self.table.to_dict(), "pooled": self.pooled.calibrator.to_dict(), "segments": parts}


def segmented(table: SegmentTable | None, pooled: Part, parts: Sequence[Part]) -> Part:
    """The calibrators of all segments as one; without segments, the pooled one."""
    if table is None:
        return pooled
    every = SegmentedCalibrator(table, pooled, parts)
    return Part(every.groups, every)

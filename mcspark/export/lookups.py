"""The terms of a stage as a few tables, each looked up once a row by bin and codes in some families.

A curve depends on the bin and one or two families, a pair of groups on two to four families. Tables are
merged where the merged one stays small: fewer look-ups for a few more rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from mcspark.core.cells.groups import FittedGroups
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.model.additive import AdditiveForm


@dataclass(frozen=True, eq=False)
class Lookup:
    """One table.

    Attributes
    ----------
    families : tuple of int
        Families whose codes it is looked up by; the code is 0 for none of the groups.
    steps : tuple of int
        What one more in the code of each of these families adds to the place.
    by_bin : bool
        Whether the bin, too, is added to the place.
    places : ndarray of int, shape (R,)
        In increasing order; a place that is not there has the term 0.
    terms : ndarray, shape (R,)
    dense : bool
        Whether every place from 0 is there.
    """

    families: tuple[int, ...]
    steps: tuple[int, ...]
    by_bin: bool
    places: IntArray
    terms: FloatArray
    dense: bool


def lookups(groups: FittedGroups, form: AdditiveForm, most: int) -> list[Lookup]:
    """Tables whose terms at the bin and the codes of a row add up to its curves and its pairs.

    Parameters
    ----------
    groups : FittedGroups
    form : AdditiveForm
    most : int
        Rows up to which a table may be merged with others and has every place.
    """
    space = _Space([len(family.categories) + 1 for family in groups.families], form.n_bins, most)
    of_axes: dict[_Axes, list[_Term]] = {}
    for term in _terms(groups, form):
        of_axes.setdefault(term.axes, []).append(term)
    return [_table(axes, terms, space) for axes, terms in _merged(of_axes, space)]


_BIN = -1
_Axes = tuple[int, ...]  # the families that something depends on, with _BIN before them if on the bin too


@dataclass(frozen=True)
class _Space:
    sizes: list[int]
    bins: int
    most: int

    def size(self, axis: int) -> int:
        return self.bins if axis == _BIN else self.sizes[axis]

    def rows(self, axes: _Axes) -> int:
        return prod(map(self.size, axes))


@dataclass(frozen=True, eq=False)
class _Term:
    codes: dict[int, int]
    values: FloatArray  # one a bin, or one
    axes: _Axes


def _terms(groups: FittedGroups, form: AdditiveForm) -> Iterator[_Term]:
    codes = [
        {i: code} for i, family in enumerate(groups.families) for code in range(1, len(family.categories) + 1)
    ]
    codes += [{**codes[i], **codes[j]} for i, j in groups.pairs]
    for group in np.flatnonzero(form.curves.any(axis=1)).tolist():
        yield _Term(codes[group], form.curves[group], (_BIN, *sorted(codes[group])))
    for (i, j), value in zip(form.pairs.tolist(), form.pair_values.tolist(), strict=True):
        both = {**codes[i], **codes[j]}
        if both == {**codes[j], **codes[i]}:  # nobody is in two groups of one family
            yield _Term(both, np.array([value]), tuple(sorted(both)))


def _merged(found: dict[_Axes, list[_Term]], space: _Space) -> list[tuple[_Axes, list[_Term]]]:
    """The terms by axes, those with the smallest union put together first while that stays small."""
    small = {axes: terms for axes, terms in found.items() if space.rows(axes) <= space.most}
    large = {axes: terms for axes, terms in found.items() if axes not in small}
    while True:
        unions = [(tuple(sorted({*a, *b})), a, b) for a, b in combinations(sorted(small), 2)]
        sized = [(space.rows(union), union, a, b) for union, a, b in unions]
        rows, union, a, b = min(sized, default=(space.most + 1, (), (), ()))
        if rows > space.most:
            return sorted([*small.items(), *large.items()], key=lambda one: one[0])
        both = [*small.pop(a), *small.pop(b)]
        small[union] = [*small.get(union, []), *both]


def _table(axes: _Axes, terms: list[_Term], space: _Space) -> Lookup:
    steps, rows = {}, 1
    for axis in axes:
        steps[axis] = rows
        rows *= space.size(axis)
    dense = rows <= space.most
    places, values = [np.arange(rows if dense else 0)], [np.zeros(rows if dense else 0)]
    for term in terms:
        place, value = np.zeros(1, dtype=np.int64), term.values
        for axis in axes:
            known = term.codes.get(axis)
            codes = np.arange(space.size(axis)) if known is None else np.array([known])
            place = (place + steps[axis] * codes[:, None]).reshape(-1)
            # The bin is the first axis: then the values are one a bin, and repeated along the others.
            value = np.broadcast_to(value, (len(place) // len(value), len(value))).reshape(-1)
        places.append(place)
        values.append(value)
    distinct, at = np.unique(np.concatenate(places), return_inverse=True)
    sums = np.zeros(len(distinct))
    np.add.at(sums, at.reshape(-1), np.concatenate(values))
    families = tuple(axis for axis in axes if axis != _BIN)
    return Lookup(families, tuple(steps[f] for f in families), _BIN in axes, distinct, sums, dense)

"""What trees learn from, where that is columns: all of their categories, and what there may be of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from mcspark.core.cells.groups import MAX_LEARNED, Category, Family, FittedGroups
from mcspark.core.model.terms import MAX_PAIR_VALUES
from mcspark.errors import ContractError

_GAPS = 2
"""Quotients that nobody has are categories too where they are no more than the others."""


def all_categories(
    families: Sequence[Family], shares: Sequence[Mapping[Category, float]]
) -> tuple[Family, ...]:
    """The families with every category that has a share, however small; bins with all of them.

    Raises
    ------
    ContractError
        If they have too many categories, alone or in pairs of columns, or two have one name.
    """
    found = tuple(
        replace(family, categories=_categories(family, share), seen=())
        for family, share in zip(families, shares, strict=True)
    )
    _check(found)
    return found


def _categories(family: Family, share: Mapping[Category, float]) -> tuple[Category, ...]:
    if family.where is not None:
        return (1,)
    if family.bins is not None:
        return tuple(range(len(family.bins) - 1))
    found = tuple(sorted(share))
    if family.divide_by is not None and found and isinstance(found[0], int) and isinstance(found[-1], int):
        low, high = found[0], found[-1]
        # A number between others that are known has its place among them.
        if high - low < _GAPS * len(found):
            return tuple(range(low, high + 1))
    return found


def _stem(family: Family) -> str:
    return family.column if family.where is not None else family.group_stem.rstrip("=")


def _check(features: tuple[Family, ...]) -> None:
    sizes = {_stem(family): len(family.categories) for family in features}
    if (count := sum(sizes.values())) > MAX_LEARNED:
        largest = max(sizes, key=lambda name: sizes[name])
        raise ContractError(
            f"the features have {count:,} categories, more than {MAX_LEARNED:,}; the most, "
            f"{sizes[largest]:,}, are of {largest}: give that column divide_by or bins, or leave it out"
        )
    pairs = {(one, other): sizes[one] * sizes[other] for one, other in combinations(sizes, 2)}
    if (count := sum(pairs.values())) > MAX_PAIR_VALUES:
        one, other = max(pairs, key=lambda pair: pairs[pair])
        raise ContractError(
            f"the features have {count:,} pairs of categories of two columns, more than {MAX_PAIR_VALUES:,}; "
            f"the most, {pairs[one, other]:,}, are of {one} and {other}: give one of them divide_by or bins, "
            "or leave it out"
        )
    names = Counter(FittedGroups(features).base_names)
    if twice := [name for name, n in names.items() if n > 1]:
        raise ContractError(
            f"two categories of the features have the name {twice[0]!r}; rename one of the columns"
        )

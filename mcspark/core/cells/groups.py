"""Groups, families and signatures: which groups a row is in, packed into a few integers.

A *family* is a set of mutually exclusive groups made from one attribute (one group a race, one an age band);
a predicate is a family of one. A row's *code* in a family is 0 (in none of its groups) or the 1-based place
of its group. The codes of all families, packed bit after bit into 62-bit words, are the row's *signature*:
the set of groups it is in, one to one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mcspark.core.cells.features import Features, category_numbers
from mcspark.core.cells.levels import FloatArray, IntArray

Category = str | int
Kind = Literal["value", "bins", "divide", "predicate"]

WORD_BITS = 62
"""Bits used of each signed 64-bit word of a signature."""

MAX_GROUPS = 4096
"""Most groups of one set, chosen or read from a file; memory goes with groups times signatures."""

MAX_LEARNED = 2**15
"""Most categories of all columns that trees learn from."""


@dataclass(frozen=True)
class Family:
    """Mutually exclusive groups from one attribute column, or one predicate.

    Parameters
    ----------
    kind : {'value', 'bins', 'divide', 'predicate'}
        How a category is made: the value itself, the place among ``bins``, ``floor(column / divide_by)``,
        or whether ``where`` holds.
    column : str
        Attribute column; the name of the group for a predicate.
    categories : tuple of str or int
        The categories that are groups, in order of their codes 1, 2, …; ``(1,)`` for a predicate.
    bins : tuple of float, optional
        Edges, left-closed and right-open.
    divide_by : float, optional
    where : str, optional
        Checked Spark SQL predicate.
    columns : tuple of str
        The attribute columns that the family reads.
    seen : tuple of str or int
        Every category met when the groups were chosen, groups or not.
    title : str, optional
        What people read for the column.
    labels : tuple of (str, str), optional
        What people read for a value, by the text that follows :attr:`group_stem` in a group's name.
    """

    kind: Kind
    column: str
    categories: tuple[Category, ...] = ()
    bins: tuple[float, ...] | None = None
    divide_by: float | None = None
    where: str | None = None
    columns: tuple[str, ...] = ()
    seen: tuple[Category, ...] = ()
    title: str | None = None
    labels: tuple[tuple[str, str], ...] | None = None

    def group_name(self, category: Category) -> str:
        """Name of the group of a category: ``RAC1P=1``, ``AGEP=[18,25)``, ``OCCP/100=47``."""
        if self.kind == "predicate":
            return self.column
        if self.kind == "bins":
            assert self.bins is not None
            k = int(category)
            return f"{self.group_stem}[{_shortest(self.bins[k])},{_shortest(self.bins[k + 1])})"
        return f"{self.group_stem}{category}"

    @property
    def group_stem(self) -> str:
        """What the names of its groups begin with, if it is no predicate: ``RAC1P=``, ``OCCP/100=``."""
        by = f"/{_shortest(self.divide_by)}" if self.divide_by is not None else ""
        return f"{self.column}{by}="

    @property
    def definition(self) -> tuple[Any, ...]:
        """What its categories are of, whichever there are."""
        return self.kind, self.column, self.bins, self.divide_by, self.where, self.columns

    @property
    def bits(self) -> int:
        """Bits that a code of this family takes in a signature."""
        return max(len(self.categories).bit_length(), 1)


@dataclass(frozen=True)
class Place:
    """Where the code of one family stands in a signature."""

    word: int
    shift: int
    bits: int


@dataclass(frozen=True)
class FittedGroups:
    """The groups of a calibrator, chosen once and stored with it.

    Parameters
    ----------
    families : tuple of Family
    pairs : tuple of (int, int)
        Intersections of two of the families' groups, as places in their names; they follow them in order.
    dropped : tuple of (str, str)
        Groups that were considered and left out, with the reason.
    features : tuple of Family
        The columns that trees learn from, those of the families first, with all their categories. Signatures
        are about them then. None: trees learn from the groups.
    """

    families: tuple[Family, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    features: tuple[Family, ...] = ()

    @property
    def signed(self) -> tuple[Family, ...]:
        """The families that a signature is about."""
        return self.features or self.families

    @property
    def measured(self) -> FittedGroups:
        """The same groups, whatever trees learn from."""
        return replace(self, features=())

    @property
    def base_names(self) -> tuple[str, ...]:
        """Names of the families' groups, without intersections."""
        return tuple(f.group_name(c) for f in self.families for c in f.categories)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all groups, in the order of the columns of :meth:`membership`."""
        base = self.base_names
        return base + tuple(f"{base[i]} & {base[j]}" for i, j in self.pairs)

    @property
    def columns(self) -> tuple[str, ...]:
        """Attribute columns that the groups and the trees read, each once."""
        return tuple(dict.fromkeys(c for f in self.signed for c in f.columns))

    @property
    def learned(self) -> FittedGroups:
        """What the trees learn from, as groups: these, or all categories of the features."""
        return FittedGroups(self.features) if self.features else self

    @property
    def learned_names(self) -> tuple[str, ...]:
        """Names of what the trees learn from."""
        return self.learned.names

    @property
    def family_of_group(self) -> IntArray:
        """Family of each base group."""
        return np.repeat(np.arange(len(self.families)), [len(f.categories) for f in self.families])

    @property
    def layout(self) -> tuple[Place, ...]:
        """Place of each family's code in the signature, first fit in order."""
        places, word, used = [], 0, 0
        for family in self.signed:
            if used + family.bits > WORD_BITS:
                word, used = word + 1, 0
            places.append(Place(word, used, family.bits))
            used += family.bits
        return tuple(places)

    @property
    def n_words(self) -> int:
        """Number of words of a signature, at least 1."""
        return self.layout[-1].word + 1 if self.signed else 1

    def codes(self, words: IntArray) -> IntArray:
        """Unpack signatures, shape (N, n_words), to codes, shape (N, number of signed families)."""
        columns = [(words[:, p.word] >> p.shift) & ((1 << p.bits) - 1) for p in self.layout]
        return np.stack(columns, axis=1) if columns else np.zeros((len(words), 0), dtype=np.int64)

    def words(self, codes: IntArray) -> IntArray:
        """Pack codes, shape (N, number of signed families), to signatures, shape (N, n_words)."""
        out = np.zeros((len(codes), self.n_words), dtype=np.int64)
        for i, p in enumerate(self.layout):
            out[:, p.word] |= codes[:, i] << p.shift
        return out

    def membership(self, words: IntArray) -> NDArray[np.bool_]:
        """Groups of each signature, shape (N, G)."""
        codes = self.codes(words)
        base = np.zeros((len(words), sum(len(f.categories) for f in self.families)), dtype=bool)
        start = 0
        for i, family in enumerate(self.families):
            code = self._own_code(i)[codes[:, i]] if self.features else codes[:, i]
            inside = np.flatnonzero(code)
            base[inside, start + code[inside] - 1] = True
            start += len(family.categories)
        return self.with_intersections(base)

    def _own_code(self, i: int) -> IntArray:
        """Code in a family of each code in the feature of its column."""
        code = {category: place for place, category in enumerate(self.families[i].categories, start=1)}
        return np.array([0, *(code.get(category, 0) for category in self.features[i].categories)])

    def features_of(self, words: IntArray) -> Features | None:
        """What trees learn from of each signature, where that is not the groups."""
        if not self.features:
            return None
        sizes = tuple(len(f.categories) for f in self.features)
        return Features(self.learned_names, sizes, tuple(map(is_ordered, self.features)), self.codes(words))

    def members(self, words: IntArray) -> IntArray | NDArray[np.bool_]:
        """Groups of each signature as calibrators take them: of the features, lists of their categories."""
        if not self.features:
            return self.membership(words)
        return category_numbers(self.codes(words), [len(f.categories) for f in self.features])

    def with_intersections(self, base: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Groups, shape (N, G), from those of single categories, shape (N, number of :attr:`base_names`)."""
        if not self.pairs:
            return base
        left, right = np.asarray(self.pairs, dtype=np.int64).T
        return np.concatenate([base, base[:, left] & base[:, right]], axis=1)

    def with_pairs(self, words: IntArray, weight: FloatArray, min_share: float) -> FittedGroups:
        """Add every intersection of two groups that holds more than ``min_share`` of the weight.

        Parameters
        ----------
        words : ndarray of int, shape (S, n_words)
            Distinct signatures of the labelled rows.
        weight : ndarray, shape (S,)
            Their weight.
        min_share : float
        """
        base = replace(self, pairs=()).membership(words).astype(np.float64)
        return self.with_joint(base.T @ (base * weight[:, None]), weight.sum(), min_share)

    def with_joint(self, joint: FloatArray, total: float, min_share: float) -> FittedGroups:
        """As :meth:`with_pairs`, from the weight of the rows in each two base groups, and of all rows."""
        family, alone = self.family_of_group, np.diag(joint)
        pairs = []
        for i in range(len(alone)):
            for j in range(i + 1, len(alone)):
                # An intersection that is one of its parents says nothing new.
                whole = joint[i, j] >= min(alone[i], alone[j]) * (1 - 1e-12)
                if family[i] != family[j] and not whole and joint[i, j] > min_share * total:
                    pairs.append((i, j))
            if len(pairs) > MAX_GROUPS:
                break  # more than can be used
        return replace(self, pairs=tuple(pairs))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "families": [
                {k: list(v) if isinstance(v, tuple) else v for k, v in vars(f).items() if v is not None}
                for f in self.families
            ],
            "pairs": [list(p) for p in self.pairs],
            "dropped": [list(d) for d in self.dropped],
        }

    def features_to_dict(self) -> list[dict[str, Any]]:
        """Plain JSON form of the features."""
        return list(FittedGroups(self.features).to_dict()["families"])

    def with_features_of(self, plain: Any) -> FittedGroups:
        """The same with features from :meth:`features_to_dict`; the input is untrusted and checked.

        Raises
        ------
        ValueError
            If they do not begin with the columns of the groups, or have too many categories.
        """
        if not isinstance(plain, list) or not plain:
            raise ValueError("the features of a model are a list of columns")
        features = tuple(_family_from_dict(family) for family in plain)
        found = replace(self, features=features)
        names = found.learned_names
        if len(names) > MAX_LEARNED:
            raise ValueError(f"{len(names)} categories to learn from; at most {MAX_LEARNED} are read")
        if len(set(names)) != len(names):
            raise ValueError("two categories of the features have one name")
        if len(features) < len(self.families):
            raise ValueError("a column of the groups is none of the features")
        for family, feature in zip(self.families, features, strict=False):
            if family.definition != feature.definition or not set(family.categories) <= set(
                feature.categories
            ):
                raise ValueError("a column of the groups is another one among the features")
        return found

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> FittedGroups:
        """Inverse of :meth:`to_dict`; the input is untrusted and every part of it is checked."""
        families = tuple(_family_from_dict(f) for f in plain["families"])
        n = sum(len(f.categories) for f in families)
        pairs = tuple((int(i), int(j)) for i, j in plain["pairs"])
        if not all(0 <= i < j < n for i, j in pairs):
            raise ValueError("a pair of groups points outside the groups")
        dropped = tuple((str(name), str(reason)) for name, reason in plain["dropped"])
        groups = cls(families, pairs, dropped)
        names = groups.names
        if len(names) > MAX_GROUPS:
            raise ValueError(f"{len(names)} groups; at most {MAX_GROUPS} are read")
        if len(set(names)) != len(names):
            raise ValueError("two groups have one name")
        return groups


def is_ordered(family: Family) -> bool:
    """Whether the categories are bins of numbers, in their order."""
    return family.kind in ("bins", "divide")


def distinct_rows(words: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct signatures, shape (S, W), in order, and the place of each of ``words``, shape (N,)."""
    # Word by word, each time as one number: much faster than NumPy's comparison of rows.
    place = np.zeros(len(words), dtype=np.int64)
    for word in words.T:
        values, code = np.unique(word, return_inverse=True)
        _, first, place = np.unique(
            place * len(values) + code.reshape(-1), return_index=True, return_inverse=True
        )
        place = place.reshape(-1)
    return words[first], place


NUMBER = r"\s*([-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf(inity)?|nan)\s*"
"""Text that is a number, in whatever capitals: a pattern for Java, and for Python with ASCII digits."""


def _shortest(number: float) -> str:
    """The shortest text that is this number and no other, so that no two bins have one name."""
    text = repr(float(number))
    return text.removesuffix(".0")


def _family_from_dict(plain: dict[str, Any]) -> Family:
    unknown = set(plain) - set(Family.__dataclass_fields__)
    if unknown:
        raise ValueError(f"unknown keys in a family of groups: {', '.join(sorted(unknown))}")
    kind = plain["kind"]
    if kind not in ("value", "bins", "divide", "predicate"):
        raise ValueError(f"unknown kind of groups: {kind!r}")
    categories = tuple(plain["categories"])
    seen = tuple(plain.get("seen", ()))
    if not all(isinstance(c, str | int) and not isinstance(c, bool) for c in (*categories, *seen)):
        raise ValueError("a category is neither a string nor an integer")
    types = {type(c) for c in (*categories, *seen)}
    if len(types) > 1 or (kind != "value" and str in types):
        raise ValueError("the categories of a family of groups are of different types")
    bins = tuple(float(b) for b in plain["bins"]) if plain.get("bins") is not None else None
    family = Family(
        kind=kind,
        column=str(plain["column"]),
        categories=categories,
        bins=bins,
        divide_by=None if plain.get("divide_by") is None else float(plain["divide_by"]),
        where=None if plain.get("where") is None else str(plain["where"]),
        columns=tuple(str(c) for c in plain["columns"]),
        seen=seen,
        title=None if plain.get("title") is None else _words(plain["title"]),
        labels=_labels(plain.get("labels")),
    )
    wanted = {"bins": family.bins, "divide": family.divide_by, "predicate": family.where}.get(kind, True)
    if wanted is None or (kind == "predicate" and categories != (1,)):
        raise ValueError(f"a family of kind {kind} lacks its definition")
    if family.divide_by is not None and not 0 < family.divide_by < np.inf:
        raise ValueError("divide_by of a family of groups is not positive and finite")
    if family.bins is not None and not (np.isfinite(family.bins).all() and (np.diff(family.bins) > 0).all()):
        raise ValueError("the edges of a family of groups do not increase")
    if kind == "bins" and not all(
        isinstance(c, int) and 0 <= c < len(family.bins or ()) - 1 for c in categories
    ):
        raise ValueError("a bin of a family of groups points outside its edges")
    return family


def _labels(plain: Any) -> tuple[tuple[str, str], ...] | None:
    if plain is None:
        return None
    return tuple((_words(value), _words(words)) for value, words in plain)


def _words(text: Any) -> str:
    if not isinstance(text, str) or not text.isprintable():
        raise ValueError("the words for a group of people are no printable text")
    return text

"""Cells: the sums per (score bin, signature, role) that everything else is computed from."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcspark.core.cells.derived import DERIVED
from mcspark.core.cells.features import Features
from mcspark.core.cells.levels import FloatArray, IntArray, ScoreBins, level_value
from mcspark.core.cells.ranked import DIGITS, Ranked
from mcspark.core.cells.summed import rolled


class Role(IntEnum):
    """What a labelled row is for; the names are the values of the output column ``split``."""

    fit = 0
    early_stopping = 1
    test = 2


LEAST_TOTAL = 1e-250
"""Sums of weights, and of their squares, below this or above its inverse are out of range."""

SUMS = ("n", "weight", "weight_sq", "score", "label", "score_sq", "label_sq", "score_label")
"""The sums of a cell, in order: rows, Σw, Σw², Σw·f, Σw·y, Σw·f², Σw·y², Σw·f·y."""

_ROUNDED = 1e-6
"""A mean this little out of its bin was rounded out of it; the narrowest bins are wider."""


@dataclass(frozen=True)
class Cells:
    """A table of cells and what is needed to read it.

    Parameters
    ----------
    bins : ScoreBins
        Where a score falls.
    groups : tuple of str, length G
        Group names, in the order of the columns of ``membership``.
    membership : ndarray of bool, shape (S, G)
        The groups of each signature.
    bin, signature, role : ndarray of int, shape (C,)
        Score bin in 0..n_bins-1, row of ``membership``, and :class:`Role` of each cell.
    n, weight, weight_sq, score, label, score_sq, label_sq, score_label : ndarray of float, shape (C,)
        The sums named in :data:`SUMS`, over the rows of the cell.
    features : Features, optional
        What trees learn from of each signature, where that is not the groups.
    """

    bins: ScoreBins
    groups: tuple[str, ...]
    membership: NDArray[np.bool_]
    bin: IntArray
    signature: IntArray
    role: IntArray
    n: FloatArray
    weight: FloatArray
    weight_sq: FloatArray
    score: FloatArray
    label: FloatArray
    score_sq: FloatArray
    label_sq: FloatArray
    score_label: FloatArray
    features: Features | None = None

    def __len__(self) -> int:
        return len(self.bin)

    @classmethod
    def from_rows(
        cls,
        score: FloatArray,
        label: FloatArray,
        membership: NDArray[np.bool_],
        *,
        bins: ScoreBins,
        weight: FloatArray | None = None,
        role: IntArray | None = None,
        groups: tuple[str, ...] | None = None,
    ) -> Cells:
        """Cells of rows held in memory; the reference for Spark's, and a way in for small tables.

        Parameters
        ----------
        score, label : ndarray, shape (N,), range [0, 1]
        membership : ndarray of bool, shape (N, G)
        bins : ScoreBins
        weight : ndarray, shape (N,), optional
            Non-negative; 1 if absent.
        role : ndarray of int, shape (N,), optional
            :class:`Role`; all ``fit`` if absent.
        groups : tuple of str, optional
            Names; ``g0, g1 …`` if absent.
        """
        score = np.asarray(score, dtype=np.float64)
        label = np.asarray(label, dtype=np.float64)
        w = np.ones(len(score)) if weight is None else np.asarray(weight, dtype=np.float64)
        r = np.zeros(len(score), dtype=np.int64) if role is None else np.asarray(role, dtype=np.int64)
        signatures, signature = distinct_signatures(np.asarray(membership, dtype=np.bool_))
        shape = (bins.n_bins, len(signatures), int(r.max(initial=0)) + 1)
        keys, cell = np.unique(
            np.ravel_multi_index((bins.assign(score), signature, r), shape), return_inverse=True
        )
        unique = np.stack(np.unravel_index(keys, shape))
        values = (
            np.ones(len(score)), w, w * w, w * score, w * label,
            w * score * score, w * label * label, w * score * label,
        )  # fmt: skip
        sums: dict[str, Any] = {
            name: np.bincount(cell, weights=value, minlength=len(keys)).astype(np.float64)
            for name, value in zip(SUMS, values, strict=True)
        }
        names = groups or tuple(f"g{i}" for i in range(signatures.shape[1]))
        return cls(bins, names, signatures, unique[0], unique[1], unique[2], **sums)

    @property
    def mean_score(self) -> FloatArray:
        """Mean score of each cell, shape (C,), range [0, 1]; the cells must have weight.

        Sums are rounded. Rows that all sit on an edge, as scores of two decimals do, would have a mean beside
        it and move with another bin; theirs stays in their own. Cells put together from several bins keep
        the mean they have.
        """
        mean = np.clip(self.score / self.weight, 0.0, 1.0)
        edges = self.bins.edges()
        last = np.append(np.nextafter(edges[1:-1], 0.0), 1.0)
        inside = np.clip(mean, edges[self.bin], last[self.bin])
        return np.where(np.abs(inside - mean) <= _ROUNDED, inside, mean)

    def take(self, rows: NDArray[np.bool_] | IntArray) -> Cells:
        """The cells at these places."""
        return replace(
            self, **{f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name not in _SHARED}
        )

    def of_role(self, *roles: Role) -> Cells:
        """The cells of these roles."""
        return self.take(np.isin(self.role, [int(r) for r in roles]))

    def alike(self, place: IntArray) -> tuple[IntArray, IntArray]:
        """Number of each cell among the distinct (role, signature, place), and one cell of each of these.

        Parameters
        ----------
        place : ndarray of int, shape (C,)
            Non-negative: the bin of each cell, or a coarser place of its score.
        """
        shape = (int(self.role.max(initial=0)) + 1, len(self.membership), int(place.max(initial=0)) + 1)
        key = np.ravel_multi_index((self.role, self.signature, place), shape)
        _, one, number = np.unique(key, return_index=True, return_inverse=True)
        return number.reshape(-1), one

    def merged(self, place: IntArray) -> Cells:
        """The same rows with cells of equal role, signature and place summed up; each has one of its bins."""
        number, one = self.alike(place)
        if len(one) == len(self):
            return self
        sums: dict[str, Any] = {name: np.bincount(number, weights=getattr(self, name)) for name in SUMS}
        return replace(self.take(one), **sums)

    def moved(self, state: FloatArray, bins: ScoreBins) -> Cells:
        """Cells of another score of the same rows: each row moves as the mean score of its cell does.

        Parameters
        ----------
        state : ndarray, shape (C,), range [0, 1]
            Where the mean score of each cell goes.
        bins : ScoreBins
            Where the new score falls: that of all rows of a cell, where its mean does.
        """
        weighs = self.weight > 0
        old = np.divide(self.score, self.weight, out=np.array(state), where=weighs)
        by = state - old
        sums = {
            "score": self.score + by * self.weight,
            "score_sq": self.score_sq + 2 * by * self.score + by**2 * self.weight,
            "score_label": self.score_label + by * self.label,
        }
        there = replace(self, bins=bins, bin=bins.assign(state), **sums)
        return there.merged(there.bin)

    def group_sums(self, name: str, m: int | None = None) -> FloatArray:
        """Sum of ``name`` for each group and bin, or level of the grid of ``m``; shape (G, bins or m)."""
        kept: dict[str, FloatArray] = self.__dict__.setdefault("_kept_sums", {})
        if name not in kept:
            kept[name] = self.group_sums_of(self.value_of(name))
        return rolled(kept[name], self.bins, m)

    def group_sums_of(self, value: FloatArray) -> FloatArray:
        """Sum of any value, one a cell, for each group and bin; shape (G, bins)."""
        group, owner = self.pairs
        n_bins = self.bins.n_bins
        flat = np.bincount(
            group * n_bins + self.bin[owner], weights=value[owner], minlength=len(self.groups) * n_bins
        )
        return np.asarray(flat.reshape(len(self.groups), n_bins), dtype=np.float64)

    def level_sums(self, name: str, m: int | None = None) -> FloatArray:
        """Sum of ``name`` over all rows for each bin, or level of the grid of ``m``."""
        place, n_places = self._places(m)
        return np.bincount(place, weights=self.value_of(name), minlength=n_places).astype(np.float64)

    def value_of(self, name: str) -> FloatArray:
        """A sum of :data:`SUMS` or a derived value of each cell, shape (C,)."""
        found = getattr(self, name) if name in SUMS else DERIVED[name](self)
        return np.asarray(found, dtype=np.float64)

    def total(self, name: str) -> float:
        """Sum of ``name`` over all rows."""
        return float(self.value_of(name).sum())

    @cached_property
    def ranked(self) -> Ranked:
        """How well the mean scores of the cells rank the rows; see :mod:`mcspark.core.metrics.ranking`."""
        cells = self.take(self.weight > 0)
        distinct, place = np.unique(np.round(cells.mean_score, DIGITS), return_inverse=True)
        positive = np.clip(cells.label, 0.0, cells.weight)
        sides = (positive, cells.weight - positive)
        return Ranked.of_sides(
            *(np.bincount(place, side, len(distinct)).astype(np.float64) for side in sides)
        )

    def loss(self, m: int | None = None) -> float:
        """Mean squared loss (paper, definition 3.1) of the score, or of its ``m``-discretized version."""
        total = self.weight.sum()
        if total <= 0:
            return float("nan")
        if m is None:
            square = self.score_sq - 2 * self.score_label + self.label_sq
        else:
            value = level_value(self.bins.level_of_bin(m)[self.bin], m)
            square = value**2 * self.weight - 2 * value * self.label + self.label_sq
        return float(max(square.sum(), 0.0) / total)

    def _places(self, m: int | None) -> tuple[IntArray, int]:
        if m is None:
            return self.bin, self.bins.n_bins
        return self.bins.level_of_bin(m)[self.bin], m

    @property
    def learned(self) -> NDArray[np.bool_] | IntArray:
        """The groups of each signature that trees learn from, as calibrators take them."""
        return self.membership if self.features is None else self.features.members

    @property
    def learned_names(self) -> tuple[str, ...]:
        """Names of the groups that trees learn from."""
        return self.groups if self.features is None else self.features.names

    @property
    def learned_pairs(self) -> tuple[IntArray, IntArray]:
        """Every (group that trees learn from, cell) pair."""
        if self.features is None:
            return self.pairs
        lists = self.features.members[self.signature]
        owner, column = np.nonzero(lists >= 0)
        return lists[owner, column], owner

    @property
    def learned_sizes(self) -> int | tuple[int, ...]:
        """Number of the groups that trees learn from, or of the categories of each column."""
        return len(self.groups) if self.features is None else self.features.sizes

    @property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """Every (group, cell) pair: signature first, so only the handful of groups of each cell."""
        cached = self.__dict__.get("_pairs")
        if cached is None:
            per_signature = self.membership.sum(axis=1)
            groups_of = np.nonzero(self.membership)[1]
            start = np.cumsum(per_signature) - per_signature
            count = per_signature[self.signature]
            owner = np.repeat(np.arange(len(self)), count)
            offset = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
            cached = (groups_of[start[self.signature[owner]] + offset], owner)
            object.__setattr__(self, "_pairs", cached)
        return cached


_SHARED = ("bins", "groups", "membership", "features")


def effective_rows(weight: FloatArray, weight_sq: FloatArray, rows: FloatArray) -> FloatArray:
    """Rows of equal weight that say as much: (Σw)² / Σw², between 1 and the number of rows.

    Sums of weights far below the others' are rounded, the squares first; the bounds hold all the same.
    """
    most = np.maximum(rows, 1.0)
    return np.asarray(np.maximum(weight * (weight / np.maximum(weight_sq, weight * (weight / most))), 1.0))


def distinct_signatures(membership: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], IntArray]:
    """Distinct rows, sorted, and the place of each row among them; packed to bytes, which sort fast."""
    packed = np.packbits(membership, axis=1)
    if not packed.size:
        return membership[:1], np.zeros(len(membership), dtype=np.int64)
    whole = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).reshape(-1)
    _, first, place = np.unique(whole, return_index=True, return_inverse=True)
    return membership[first], place.reshape(-1)

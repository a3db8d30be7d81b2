"""The additive form: the exact sum of an ensemble of depth-2 trees over (score, groups), as small tables.

A path through such a tree looks at no more than two features, so the sum of all trees is exactly

    ``c + h[b(f)] + Σ_i g_i a_i[b(f)] + Σ_{i<j} g_i g_j p_ij``

with f the score, g the 0/1 memberships, and b(f) the number of the ensemble's score thresholds below f.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcspark.core.cells.groups import MAX_LEARNED
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.model.terms import TermSums
from mcspark.core.model.tree import Tree

BoolArray = NDArray[np.bool_]
Members = BoolArray | IntArray
"""The groups of each signature: a table of bool (S, G), or lists (S, K) of their numbers in increasing order,
with -1 anywhere for none. Lists are for many groups of which a signature has few: categories of columns."""

MAX_THRESHOLDS = 2**20
MAX_CURVE_VALUES = 2**26
MAX_VALUE = 1e100
"""Bounds on what a file may ask for: thresholds, groups, entries of the curves, and size of any number (so
that no sum of them can overflow)."""


@dataclass(frozen=True, eq=False)
class AdditiveForm:
    """Correction of a score as a function of the score and the groups.

    Parameters
    ----------
    thresholds : ndarray, shape (B - 1,)
        Strictly increasing. Bin ``b`` holds the scores with exactly ``b`` thresholds below them:
        ``thresholds[b - 1] < f <= thresholds[b]``.
    constant : float
        The term c.
    base : ndarray, shape (B,)
        The term h: what every row in a bin gets.
    curves : ndarray, shape (G, B)
        The terms a_i: what a member of group i gets on top.
    pairs : ndarray of int, shape (P, 2)
        Groups i < j, in increasing order, none twice.
    pair_values : ndarray, shape (P,)
        The terms p_ij: what a member of both gets on top.

    Raises
    ------
    ValueError
        If shapes, order or index ranges are wrong, or a number is not finite or beyond :data:`MAX_VALUE`.
    """

    thresholds: FloatArray
    constant: float
    base: FloatArray
    curves: FloatArray
    pairs: IntArray
    pair_values: FloatArray

    def __post_init__(self) -> None:
        bins = len(self.thresholds) + 1
        groups = len(self.curves)
        if bins > MAX_THRESHOLDS or groups > MAX_LEARNED or bins * groups > MAX_CURVE_VALUES:
            raise ValueError(f"additive form: {bins} bins of {groups} groups are more than is allowed")
        for name, shape in (
            ("thresholds", (bins - 1,)), ("base", (bins,)), ("curves", (groups, bins)),
            ("pairs", (len(self.pairs), 2)), ("pair_values", (len(self.pairs),)),
        ):  # fmt: skip
            array = getattr(self, name)
            if array.shape != shape:
                raise ValueError(f"additive form: {name} has shape {array.shape} where {shape} is needed")
            if not (np.abs(array) <= MAX_VALUE).all():
                raise ValueError(f"additive form: {name} holds a value that is not finite, or too large")
        if not abs(self.constant) <= MAX_VALUE:
            raise ValueError("additive form: constant is not finite, or too large")
        if not (np.diff(self.thresholds) > 0).all():
            raise ValueError("additive form: thresholds do not increase")
        self._check_pairs()

    def _check_pairs(self) -> None:
        first, second = self.pairs[:, 0], self.pairs[:, 1]
        if not ((first >= 0) & (first < second) & (second < self.n_groups)).all():
            raise ValueError(f"additive form: a pair is not two groups i < j below {self.n_groups}")
        if not (np.diff(first * self.n_groups + second) > 0).all():
            raise ValueError("additive form: pairs are not in increasing order")

    @property
    def n_groups(self) -> int:
        """Number of groups, G."""
        return len(self.curves)

    @property
    def n_bins(self) -> int:
        """Number of bins, B."""
        return len(self.base)

    @classmethod
    def zero(cls, n_groups: int) -> AdditiveForm:
        """The correction that is 0 everywhere."""
        none = np.zeros((0, 2), dtype=np.int64)
        return cls(np.zeros(0), 0.0, np.zeros(1), np.zeros((n_groups, 1)), none, np.zeros(0))

    @classmethod
    def from_trees(cls, trees: Iterable[Tree], features: int | Sequence[int]) -> AdditiveForm:
        """Compile an ensemble: feature 0 is the score, feature i + 1 the 0/1 membership in group i.

        Parameters
        ----------
        trees : iterable of Tree
        features : int or sequence of int
            Number of groups, G; groups that no tree looks at get a curve of zeros. Or, of trees that have
            learned from columns, the number of categories of each: feature i + 1 is the code of a row in
            column i, 0 (or NaN, in columns with an order) where it is missing, and each category is a group.

        Raises
        ------
        ValueError
            If a tree looks at a feature beyond these.

        Notes
        -----
        LightGBM reads a feature value within 1e-35 of 0 as 0; the form compares it as it is.
        """
        trees = list(trees)
        cuts = [tree.threshold[tree.split_feature == 0] for tree in trees]
        thresholds = np.unique(np.concatenate([np.zeros(0), *cuts]))
        if isinstance(features, int):
            sums = TermSums(thresholds, [1] * features, missing=False)
        else:
            sums = TermSums(thresholds, features, missing=True)
        for tree in trees:
            sums.add(tree)
        return cls(**sums.arrays())

    def bins_of(self, score: FloatArray) -> IntArray:
        """Bin in 0..B-1 of each score."""
        return np.searchsorted(self.thresholds, score, side="left")

    def evaluate(self, score: FloatArray, membership: BoolArray) -> FloatArray:
        """Correction of each row, to be added to the score (or to its logit).

        Parameters
        ----------
        score : ndarray, shape (N,)
            Free of NaN.
        membership : ndarray of bool, shape (N, G)

        Returns
        -------
        ndarray, shape (N,)
        """
        member = checked_membership(membership, self.n_groups)
        bins = self.bins_of(score)
        total = self.base[bins] + self.signature_offset(member)
        for group, curve in enumerate(self.curves):
            total += np.where(member[:, group], curve[bins], 0.0)
        return np.asarray(total, dtype=np.float64)

    def signature_offset(self, members: Members) -> FloatArray:
        """The part of the correction that does not depend on the score: c + Σ g_i g_j p_ij.

        Summed pair by pair, so that a signature's value never depends on the others in the table.

        Parameters
        ----------
        members : ndarray of bool, shape (S, G), or of int, shape (S, K)

        Returns
        -------
        ndarray, shape (S,)
        """
        members = checked_members(members, self.n_groups)
        offset = np.full(len(members), self.constant)
        if members.dtype != np.bool_:
            for i, first in enumerate(members.T):
                for second in members.T[i + 1 :]:
                    both = np.flatnonzero((first >= 0) & (second >= 0))
                    known, value = self.pair_of(first[both], second[both])
                    offset[both[known]] += value
            return offset
        member = np.ascontiguousarray(members.T)
        for (i, j), value in zip(self.pairs.tolist(), self.pair_values.tolist(), strict=True):
            offset += (member[i] & member[j]) * value
        return offset

    def pair_of(self, first: IntArray, second: IntArray) -> tuple[BoolArray, FloatArray]:
        """Whether each two groups i < j have a term p_ij, and the terms of those that have one."""
        if not len(self.pairs):
            return np.zeros(len(first), dtype=np.bool_), np.zeros(0)
        keys = self._pair_keys
        wanted = first.astype(np.int64) * self.n_groups + second
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        known = keys[at] == wanted
        return known, self.pair_values[at[known]]

    @cached_property
    def _pair_keys(self) -> IntArray:
        return np.asarray(self.pairs[:, 0] * self.n_groups + self.pairs[:, 1], dtype=np.int64)

    def curves_table(self) -> dict[str, NDArray[Any]]:
        """Columns ``group`` (-1 for every row), ``bin``, ``lower``, ``upper``, ``value``, one row a step.

        A row of the table applies where ``lower < score <= upper``; the first bin starts at minus infinity
        and the last ends at infinity. The constant c is not in it.
        """
        lower = np.concatenate(([-np.inf], self.thresholds))
        upper = np.concatenate((self.thresholds, [np.inf]))
        curves = self.n_groups + 1
        return {
            "group": np.repeat(np.arange(-1, self.n_groups), self.n_bins),
            "bin": np.tile(np.arange(self.n_bins), curves),
            "lower": np.tile(lower, curves),
            "upper": np.tile(upper, curves),
            "value": np.concatenate((self.base, self.curves.reshape(-1))),
        }

    def pairs_table(self) -> dict[str, NDArray[Any]]:
        """Columns ``first``, ``second`` (group indices) and ``value``, one row a pair."""
        return {"first": self.pairs[:, 0], "second": self.pairs[:, 1], "value": self.pair_values}

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form; every float survives the round trip bit for bit."""
        return {
            "thresholds": self.thresholds.tolist(),
            "constant": float(self.constant),
            "base": self.base.tolist(),
            "curves": self.curves.tolist(),
            "pairs": self.pairs.tolist(),
            "pair_values": self.pair_values.tolist(),
        }

    @classmethod
    def from_dict(cls, plain: Any) -> AdditiveForm:
        """Inverse of :meth:`to_dict`, for files that are not trusted.

        Raises
        ------
        ValueError
            If anything in it is missing, of the wrong type or shape, not finite, or out of range.
        """
        keys = {"thresholds", "constant", "base", "curves", "pairs", "pair_values"}
        if not isinstance(plain, dict) or set(plain) != keys:
            raise ValueError(f"additive form: an object with exactly the keys {sorted(keys)} is needed")
        base = _numbers(plain, "base", 1)
        return cls(
            thresholds=_numbers(plain, "thresholds", 1),
            constant=float(_numbers(plain, "constant", 0)),
            base=base,
            curves=_numbers(plain, "curves", 2, empty=(0, len(base))),
            pairs=_whole_numbers(plain, "pairs"),
            pair_values=_numbers(plain, "pair_values", 1),
        )


def checked_members(members: Members, n_groups: int) -> Members:
    """The same if it is a table as :func:`checked_membership` wants it, or lists; a ValueError otherwise."""
    found: Any = np.asarray(members)
    if found.dtype.kind != "i":
        return checked_membership(found, n_groups)
    if found.ndim != 2 or (found.size and not -1 <= found.min() <= found.max() < n_groups):
        raise ValueError(f"lists of groups must have two dimensions and numbers below {n_groups}")
    lists: IntArray = found
    return lists


def checked_membership(membership: BoolArray, n_groups: int) -> BoolArray:
    """The table itself if it is bool of shape (N, n_groups); a ValueError otherwise."""
    member = np.asarray(membership)
    if member.dtype != np.bool_ or member.ndim != 2 or member.shape[1] != n_groups:
        raise ValueError(
            f"membership must be bool of shape (N, {n_groups}), not {member.dtype} {member.shape}"
        )
    return member


def _numbers(plain: dict[str, Any], key: str, ndim: int, empty: tuple[int, ...] = (0,)) -> FloatArray:
    try:
        array = np.asarray(plain[key])
    except (ValueError, OverflowError) as error:
        raise ValueError(f"additive form: {key} is ragged or holds too large a number") from error
    if array.size == 0 and array.ndim == 1:
        array = array.reshape(empty)
    if array.dtype.kind not in "if" or array.ndim != ndim:
        raise ValueError(f"additive form: {key} must hold numbers in {ndim} dimensions")
    return array.astype(np.float64)


def _whole_numbers(plain: dict[str, Any], key: str) -> IntArray:
    array = _numbers(plain, key, 2, empty=(0, 2))
    if not (np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < MAX_LEARNED)).all():
        raise ValueError(f"additive form: {key} must hold group indices")
    return array.astype(np.int64)

"""The leaves of an ensemble summed up in the basis {1[b], c_i 1[b], c_i c_j}: score bins and categories.

A feature beside the score has codes: 0, and one for each of its categories. A group is a feature of one
category, its members. A leaf is its value times at most two indicators, each of a score interval or of a set
of codes; the indicator of a set with code 0 in it is 1 less those of the categories outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.model.tree import Path, Tree

MAX_PAIR_VALUES = 2**25
"""Most pairs of categories of two columns that trees look at, in all: a number and a bit of each are held."""

_EVERYWHERE = (-np.inf, np.inf)
_Places = int | IntArray


class TermSums:
    """Running sums. They run leaf by leaf, as the booster's do, so rounding stays that of its own sum.

    Parameters
    ----------
    thresholds : ndarray
        All thresholds of the score, increasing.
    sizes : sequence of int
        Number of categories of each feature beside the score.
    missing : bool
        Whether code 0 is a missing number to the trees, and not the number 0.
    """

    def __init__(self, thresholds: FloatArray, sizes: Sequence[int], *, missing: bool) -> None:
        self.thresholds = thresholds
        self._sizes, self._missing = tuple(sizes), missing
        self._start = np.cumsum([0, *self._sizes]).tolist()
        self._bin_of = {t: place for place, t in enumerate(thresholds.tolist())}
        self.constant = 0.0
        self.base = np.zeros(len(thresholds) + 1)
        self.curves = np.zeros((self._start[-1], len(thresholds) + 1))
        self._pairs: dict[tuple[int, int], tuple[FloatArray, NDArray[np.bool_]]] = {}
        self._n_pairs = 0

    def add(self, tree: Tree) -> None:
        """Add the leaves of a tree; a ValueError if it looks at a feature that there is not."""
        features = tree.split_feature.tolist()
        if features and max(features) > len(self._sizes):
            raise ValueError(f"a tree splits on feature {max(features)} of {len(self._sizes) + 1}")
        if any(features[node] == 0 for node in tree.left):
            raise ValueError("a tree splits the score by category")
        left = [self._left(tree, node, feature) for node, feature in enumerate(features)]
        for value, path in tree.leaves():
            self._add_leaf(tree, left, value, path)

    def _left(self, tree: Tree, node: int, feature: int) -> int:
        """The codes that go left at a node, as bits; 0 where the score is split."""
        if feature == 0:
            return 0
        size = self._sizes[feature - 1]
        if node in tree.left:
            return tree.left[node] & ((2 << size) - 1)
        threshold = float(tree.threshold[node])
        last = int(min(max(np.floor(threshold), 0), size))
        zero = tree.missing_left(node) if self._missing else threshold >= 0
        return ((2 << last) - 2) | int(zero)

    def _add_leaf(self, tree: Tree, left: list[int], value: float, path: Path) -> None:
        low, high = _EVERYWHERE
        inside: dict[int, int] = {}
        for node, goes_left in path:
            feature = int(tree.split_feature[node])
            if feature == 0:
                threshold = float(tree.threshold[node])
                low, high = (low, min(high, threshold)) if goes_left else (max(low, threshold), high)
                continue
            every = (2 << self._sizes[feature - 1]) - 1
            codes = left[node] if goes_left else every & ~left[node]
            inside[feature - 1] = inside.get(feature - 1, every) & codes
        if low >= high or 0 in inside.values():
            return
        terms = [
            (feature, *self._indicator(feature, codes))
            for feature, codes in sorted(inside.items())
            if codes != (2 << self._sizes[feature]) - 1
        ]
        if (low, high) == _EVERYWHERE:
            self._add_everywhere(value, terms)
        else:  # a path looks at two features at most, so besides the score at one
            first = self._bin_of[low] + 1 if low in self._bin_of else 0
            last = self._bin_of[high] + 1 if high in self._bin_of else len(self.base)
            for _, _, sign, places in terms:
                self.curves[places, first:last] += sign * value
            if all(whole for _, whole, _, _ in terms):
                self.base[first:last] += value

    def _indicator(self, feature: int, codes: int) -> tuple[bool, float, _Places]:
        """Whether 1 is a term of the indicator of these codes; sign and curves of its other terms."""
        size, start = self._sizes[feature], self._start[feature]
        whole = bool(codes & 1)
        if size == 1:
            return whole, -1.0 if whole else 1.0, start
        wanted = ~codes & ((2 << size) - 1) if whole else codes
        bits = np.frombuffer(wanted.to_bytes(size // 8 + 1, "little"), dtype=np.uint8)
        places = np.flatnonzero(np.unpackbits(bits, bitorder="little")) - 1 + start
        return whole, -1.0 if whole else 1.0, places

    def _add_everywhere(self, value: float, terms: list[tuple[int, bool, float, _Places]]) -> None:
        if all(whole for _, whole, _, _ in terms):
            self.constant += value
        for i, (_, _, sign, places) in enumerate(terms):
            if all(whole for j, (_, whole, _, _) in enumerate(terms) if j != i):
                self.curves[places] += sign * value
        if len(terms) == 2:
            (one, _, sign, places), (other, _, other_sign, other_places) = terms
            sums, known = self._pair(one, other)
            at = _crossed(places, self._start[one], other_places, self._start[other])
            sums[at] += sign * other_sign * value
            known[at] = True

    def _pair(self, one: int, other: int) -> tuple[FloatArray, NDArray[np.bool_]]:
        if (one, other) not in self._pairs:
            shape = self._sizes[one], self._sizes[other]
            self._n_pairs += shape[0] * shape[1]
            if self._n_pairs > MAX_PAIR_VALUES:
                raise ValueError(f"the trees look at more than {MAX_PAIR_VALUES} pairs of categories")
            self._pairs[one, other] = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
        return self._pairs[one, other]

    def arrays(self) -> dict[str, Any]:
        """The fields of :class:`mcspark.core.model.additive.AdditiveForm`."""
        pairs, values = [np.zeros((0, 2), dtype=np.int64)], [np.zeros(0)]
        for (one, other), (sums, known) in self._pairs.items():
            pairs.append(np.argwhere(known) + np.array([self._start[one], self._start[other]]))
            values.append(sums[known])
        every, value = np.concatenate(pairs), np.concatenate(values)
        order = np.lexsort((every[:, 1], every[:, 0]))
        return {
            "thresholds": self.thresholds,
            "constant": self.constant,
            "base": self.base,
            "curves": self.curves,
            "pairs": every[order],
            "pair_values": value[order],
        }


def _crossed(one: _Places, start: int, other: _Places, other_start: int) -> Any:
    """Index into the table of two features."""
    if isinstance(one, int) and isinstance(other, int):
        return one - start, other - other_start
    return np.ix_(np.atleast_1d(one) - start, np.atleast_1d(other) - other_start)

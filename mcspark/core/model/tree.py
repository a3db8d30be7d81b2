"""One regression tree of an ensemble, as LightGBM lays it out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from mcspark.core.cells.levels import FloatArray, IntArray

MAX_PATH_FEATURES = 2

Path = tuple[tuple[int, bool], ...]
"""The nodes from the root to a leaf, each with whether the way goes left there."""

CATEGORICAL = 1
"""Bit of a decision type: the split is by category."""

_DEFAULT_LEFT = 2
_MISSING_SHIFT = 2  # decision_type: bit 0 categorical, bit 1 default left, bits 2-3 what counts as missing
_NAN = 2
_MISSING_TYPES = {0: "none", 1: "zero", _NAN: "nan"}


@dataclass(frozen=True, eq=False)
class Tree:
    """One regression tree, as LightGBM lays it out.

    Node ``k`` sends a row left when ``value <= threshold[k]``, or when its category is one of ``left[k]``. A
    child ``c >= 0`` is a node, a child ``c < 0`` is leaf ``-c - 1``. A tree of one leaf has no nodes.

    Parameters
    ----------
    split_feature, left_child, right_child, decision_type : ndarray of int, shape (L - 1,)
    threshold : ndarray of float, shape (L - 1,)
    leaf_value : ndarray of float, shape (L,)
    left : mapping of int to int
        For each node with a categorical split, the categories that go left, as the bits of one number.

    Raises
    ------
    ValueError
        If the arrays are no tree, or are a tree that no additive form can hold.
    """

    split_feature: IntArray
    threshold: FloatArray
    left_child: IntArray
    right_child: IntArray
    leaf_value: FloatArray
    decision_type: IntArray
    left: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes = len(self.leaf_value) - 1
        if nodes < 0:
            raise ValueError("it has no leaf")
        for name in ("split_feature", "threshold", "left_child", "right_child", "decision_type"):
            if len(getattr(self, name)) != nodes:
                raise ValueError(f"{name} has {len(getattr(self, name))} entries where {nodes} are needed")
        # Where missing values have a way of their own, an infinite threshold parts them from all numbers.
        parts_missing = (self.threshold == np.inf) & (self.decision_type >> _MISSING_SHIFT == _NAN)
        if not (np.isfinite(self.leaf_value).all() and (np.isfinite(self.threshold) | parts_missing).all()):
            raise ValueError("a leaf value or a threshold is not finite")
        if nodes and self.split_feature.min() < 0:
            raise ValueError("a split feature is negative")
        for node, kind in enumerate(self.decision_type.tolist()):
            _check_decision(kind)
            if bool(kind & CATEGORICAL) != (node in self.left):
                raise ValueError("a categorical split without categories, or categories without one")
        children = sorted([*self.left_child.tolist(), *self.right_child.tolist()])
        # Node 0 is the root; every other node and every leaf is the child of exactly one node.
        if nodes and children != [*range(-nodes - 1, 0), *range(1, nodes)]:
            raise ValueError("left_child and right_child do not make a tree")
        if sum(1 for _ in self.leaves()) != nodes + 1:
            raise ValueError("left_child and right_child do not make a tree")

    def leaves(self) -> Iterator[tuple[float, Path]]:
        """Value of every leaf, and the path to it."""
        feature, value = self.split_feature.tolist(), self.leaf_value.tolist()
        left, right = self.left_child.tolist(), self.right_child.tolist()
        todo: list[tuple[int, Path]] = [(0 if feature else -1, ())]
        while todo:
            node, path = todo.pop()
            if node < 0:
                yield value[-node - 1], path
                continue
            looked_at = {feature[node], *(feature[before] for before, _ in path)}
            if len(looked_at) > MAX_PATH_FEATURES:
                raise ValueError(
                    f"a path looks at more than {MAX_PATH_FEATURES} features "
                    f"({', '.join(map(str, sorted(looked_at)))}); train with max_depth=2"
                )
            todo.append((right[node], (*path, (node, False))))
            todo.append((left[node], (*path, (node, True))))

    def missing_left(self, node: int) -> bool:
        """Whether a missing number goes left; LightGBM takes it as 0 where it saw none in training."""
        kind = int(self.decision_type[node])
        if _MISSING_TYPES[kind >> _MISSING_SHIFT] == "nan":
            return bool(kind & _DEFAULT_LEFT)
        return bool(self.threshold[node] >= 0)


def sees_no_missing(kind: int) -> bool:
    """Whether a decision type is that of numbers none of which was missing in training."""
    return not kind & CATEGORICAL and _MISSING_TYPES.get(kind >> _MISSING_SHIFT) == "none"


def missing_kind(*, left: bool) -> int:
    """The decision type of numbers whose missing ones go left, or right."""
    return _NAN << _MISSING_SHIFT | (_DEFAULT_LEFT if left else 0)


def _check_decision(kind: int) -> None:
    missing = _MISSING_TYPES.get(kind >> _MISSING_SHIFT)
    if missing is None:
        raise ValueError(f"decision_type {kind} is unknown")
    if missing == "zero":
        raise ValueError("it takes zero as missing; train with zero_as_missing=false")

"""Read and rewrite LightGBM's model text: formats v3 and v4.

A model here predicts the sum of its trees' leaf values (LightGBM's raw score; the learning rate is already
inside the leaf values). What the additive form cannot hold is refused, never approximated: linear leaves,
zero taken as missing, averaged forests, several classes, and any path through a tree that looks at more than
two features.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.model.tree import CATEGORICAL, Tree, missing_kind, sees_no_missing

VERSIONS = ("v3", "v4")

_SET_BITS = 32
_GREATEST_INT = 2**31 - 1


def parse_trees(text: str) -> list[Tree]:
    """Trees of a model text, in order of boosting.

    Parameters
    ----------
    text : str
        What LightGBM's ``save_model`` or ``model_to_string`` writes.

    Raises
    ------
    ValueError
        If the text is malformed, or a model that no additive form can hold; the message names the tree.
    """
    document = _Document.read(text)
    n_features = document.n_features
    trees = []
    for i, block in enumerate(document.blocks):
        try:
            tree = _parse_block(block)
            if len(tree.split_feature) and tree.split_feature.max() >= n_features:
                raise ValueError(f"split_feature {tree.split_feature.max()} is not below {n_features}")
        except ValueError as error:
            raise ValueError(f"LightGBM model, tree {i} of {len(document.blocks)}: {error}") from error
        trees.append(tree)
    return trees


def keep_trees(text: str, n: int) -> str:
    """The model of the first ``n`` trees: the cut at the best iteration.

    Raises
    ------
    ValueError
        If the text is malformed or ``n`` is not in 0..number of trees.
    """
    document = _Document.read(text)
    if not 0 <= n <= len(document.blocks):
        raise ValueError(f"LightGBM model: cannot keep {n} of {len(document.blocks)} trees")
    return replace(document, blocks=document.blocks[:n]).write()


def map_thresholds(
    text: str,
    feature: int,
    mapping: Callable[[float], float],
    value_range: tuple[float, float] = (0.0, 1.0),
) -> str:
    """Rewrite every threshold of one feature, as when a model of bin numbers becomes one of scores.

    Parameters
    ----------
    text : str
    feature : int
        Index of the feature.
    mapping : callable
        Old threshold → new one; it must not decrease. See :func:`score_threshold`.
    value_range : (float, float)
        Least and greatest value of the feature after the mapping, for the header.

    Raises
    ------
    ValueError
        If the text is malformed, or the mapping decreases or leaves the finite numbers.
    """
    document = _Document.read(text)
    if not 0 <= feature < document.n_features:
        raise ValueError(f"LightGBM model: no feature {feature} among {document.n_features}")
    mapped: dict[float, float] = {}
    blocks = []
    for block in document.blocks:
        features, tokens = _field(block, "split_feature").split(), _field(block, "threshold").split()
        if len(features) != len(tokens):
            raise ValueError("LightGBM model: a tree's split_feature and threshold differ in length")
        for k, token in enumerate(tokens):
            if int(features[k]) == feature:
                old = float(token)
                new = mapped.setdefault(old, float(mapping(old)))
                tokens[k] = f"{new:.17g}"
        blocks.append(re.sub(r"(?m)^threshold=.*$", "threshold=" + " ".join(tokens), block))
    _check_mapping(mapped)
    infos = document.header["feature_infos"].split()
    if infos[feature] != "none":
        infos[feature] = f"[{value_range[0]:.17g}:{value_range[1]:.17g}]"
    header = {**document.header, "feature_infos": " ".join(infos)}
    return replace(document, header=header, blocks=tuple(blocks)).write()


def score_threshold(edges: FloatArray) -> Callable[[float], float]:
    """Mapping for :func:`map_thresholds` from bin numbers to scores.

    "Bin <= t goes left" becomes "score < edge[floor(t) + 1]", which is LightGBM's ``score <= x`` for the
    greatest double ``x`` below that edge. A threshold beyond the last bin keeps every score on the left
    (1.0), one below the first bin none (-1.0).

    Parameters
    ----------
    edges : ndarray, shape (n_bins + 1,)
        Edges of the score bins from 0 to 1, as :meth:`mcspark.core.cells.levels.ScoreBins.edges` gives them.
    """
    below = np.nextafter(np.asarray(edges, dtype=np.float64), -np.inf)
    n_bins = len(below) - 1

    def mapping(threshold: float) -> float:
        if threshold < 0:
            return -1.0
        edge = int(min(np.floor(threshold), n_bins)) + 1
        return 1.0 if edge >= n_bins else float(below[edge])

    return mapping


def plus_constant(text: str, constant: float) -> str:
    """The model whose every prediction is so much higher: the leaves of its first tree are.

    Raises
    ------
    ValueError
        If the text is malformed, or has no tree.
    """
    document = _Document.read(text)
    if not document.blocks:
        raise ValueError("LightGBM model: there is no tree that a constant could be added to")
    first = document.blocks[0]
    for key in ("leaf_value", "internal_value"):
        moved = " ".join(f"{float(token) + constant:.17g}" for token in _field(first, key, "").split())
        first = re.sub(rf"(?m)^{key}=.*$", f"{key}={moved}", first)
    return replace(document, blocks=(first, *document.blocks[1:])).write()


def missing_with_most(text: str, features: Collection[int]) -> str:
    """The model whose splits of these features send missing values to the heavier side, where none was seen.

    LightGBM would take them as 0. What it has seen stays as it is.

    Raises
    ------
    ValueError
        If the text is malformed.
    """
    document = _Document.read(text)
    blocks = (_missing_with_most(block, features) for block in document.blocks)
    return replace(document, blocks=tuple(blocks)).write()


def _missing_with_most(block: str, features: Collection[int]) -> str:
    tree = _parse_block(block)
    if not len(tree.split_feature):
        return block
    weight = np.concatenate([_floats(block, "internal_weight"), _floats(block, "leaf_weight")[::-1]])
    if len(weight) != 2 * len(tree.leaf_value) - 1:
        raise ValueError("internal_weight and leaf_weight do not fit the tree")
    # Node c is child c, leaf i is child -i - 1: counted from the end.
    left_is_heavier = weight[tree.left_child] >= weight[tree.right_child]
    kinds = tree.decision_type.copy()
    for node, (feature, kind) in enumerate(zip(tree.split_feature.tolist(), kinds.tolist(), strict=True)):
        if feature in features and sees_no_missing(kind):
            kinds[node] = missing_kind(left=bool(left_is_heavier[node]))
    return re.sub(r"(?m)^decision_type=.*$", "decision_type=" + " ".join(map(str, kinds)), block)


def without_addresses(text: str) -> str:
    """The text without the addresses of the machines that have trained together, which differ each time."""
    return re.sub(r"(?m)^\[(?:machines|local_listen_port): .*\]\n", "", text)


def feature_names(count: int, stem: str = "g") -> tuple[str, ...]:
    """Names that LightGBM allows for the features (score, groups): ``score, g0, g1 …``."""
    return ("score", *(f"{stem}{i}" for i in range(count)))


def with_feature_names(text: str, names: Sequence[str]) -> str:
    """The same model with other feature names.

    Raises
    ------
    ValueError
        If the text is malformed, or the names are too few, too many, repeated, or not letters, digits,
        ``_``, ``.`` and ``-``.
    """
    document = _Document.read(text)
    if len(names) != document.n_features or len(set(names)) != len(names):
        raise ValueError(f"LightGBM model: {document.n_features} different feature names are needed")
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9_.\-]+", name):
            raise ValueError(f"LightGBM model: {name!r} cannot be a feature name")
    return replace(document, header={**document.header, "feature_names": " ".join(names)}).write()


@dataclass(frozen=True)
class _Document:
    """A model text cut into its header, one block a tree, and what follows the trees."""

    header: dict[str, str]
    blocks: tuple[str, ...]
    tail: str

    @classmethod
    def read(cls, text: str) -> _Document:
        end = text.find("\nend of trees")
        if not text.startswith("tree\n") or end < 0:
            raise ValueError('not a LightGBM model text: it must start with "tree" and hold "end of trees"')
        head, *blocks = re.split(r"(?m)^(?=Tree=\d+$)", text[: end + 1])
        lines = (line.partition("=") for line in head.splitlines() if line)
        header = {key: value for key, _, value in lines}
        document = cls(header, tuple(blocks), text[end + 1 :])
        document._check()
        return document

    def _check(self) -> None:
        missing = [key for key in _HEADER_KEYS if key not in self.header]
        if missing:
            raise ValueError(f"LightGBM model: the header lacks {', '.join(missing)}")
        if self.header["version"] not in VERSIONS:
            raise ValueError(f"LightGBM model: format {self.header['version']} is none of {VERSIONS}")
        if not self.header["max_feature_idx"].isdecimal():
            raise ValueError("LightGBM model: max_feature_idx is no number")
        if self.header["num_class"] != "1" or self.header["num_tree_per_iteration"] != "1":
            raise ValueError("LightGBM model: only models of one tree an iteration are additive")
        if "average_output" in self.header:
            raise ValueError("LightGBM model: it averages its trees (boosting=rf) instead of adding them")
        sizes = len(self.header["tree_sizes"].split())
        if sizes != len(self.blocks):
            raise ValueError(f"LightGBM model: {sizes} trees in the header, {len(self.blocks)} in the text")
        for key in ("feature_names", "feature_infos"):
            if len(self.header[key].split()) != self.n_features:
                raise ValueError(f"LightGBM model: {key} does not have {self.n_features} entries")

    @property
    def n_features(self) -> int:
        return int(self.header["max_feature_idx"]) + 1

    def write(self) -> str:
        """The text, with tree sizes and split counts that fit its trees."""
        sizes = " ".join(str(len(block.encode())) for block in self.blocks)
        header = {**self.header, "tree_sizes": sizes}
        lines = [key if key in _FLAGS else f"{key}={value}" for key, value in header.items()]
        return "\n".join(lines) + "\n\n" + "".join(self.blocks) + self._tail_with_importances()

    def _tail_with_importances(self) -> str:
        before, mark, after = self.tail.partition("\nfeature_importances:\n")
        if not mark:
            return self.tail
        features = [int(f) for block in self.blocks for f in _field(block, "split_feature").split()]
        counts = np.bincount(features, minlength=self.n_features) if features else np.zeros(0, dtype=int)
        names = self.header["feature_names"].split()
        order = sorted(np.nonzero(counts)[0], key=lambda i: -counts[i])
        rest = after[0 if after.startswith("\n") else after.find("\n\n") + 1 :]
        return before + mark + "".join(f"{names[i]}={counts[i]}\n" for i in order) + rest


_HEADER_KEYS = (
    "version", "num_class", "num_tree_per_iteration", "max_feature_idx", "feature_names", "feature_infos",
    "tree_sizes",
)  # fmt: skip
_FLAGS = ("tree", "average_output")


def _parse_block(block: str) -> Tree:
    if int(_field(block, "is_linear", "0")):
        raise ValueError("its leaves are linear models; train with linear_tree=false")
    tree = Tree(
        split_feature=_ints(block, "split_feature"),
        threshold=_floats(block, "threshold"),
        left_child=_ints(block, "left_child"),
        right_child=_ints(block, "right_child"),
        leaf_value=_floats(block, "leaf_value"),
        decision_type=_ints(block, "decision_type"),
        left=_left_sets(block),
    )
    if len(tree.leaf_value) != int(_field(block, "num_leaves")):
        raise ValueError(f"num_leaves is {_field(block, 'num_leaves')} and not {len(tree.leaf_value)}")
    return tree


def _left_sets(block: str) -> dict[int, int]:
    """The categories that go left at each categorical node, as bits: ``threshold`` says which set is its."""
    kinds, places = _ints(block, "decision_type").tolist(), _floats(block, "threshold").tolist()
    nodes = [node for node, kind in enumerate(kinds) if kind & CATEGORICAL]
    count = int(_field(block, "num_cat", "0"))
    if count != len(nodes) or len(kinds) != len(places):
        raise ValueError(f"num_cat is {count}, but {len(nodes)} splits are categorical")
    if not nodes:
        return {}
    ends = _ints(block, "cat_boundaries").tolist()
    words = [int(token) for token in _field(block, "cat_threshold").split()]
    right = len(ends) == count + 1 and ends[0] == 0 and ends[-1] == len(words)
    if not right or any(low >= high for low, high in pairwise(ends)):
        raise ValueError("cat_boundaries does not cut cat_threshold into sets")
    if any(not 0 <= word < 2**_SET_BITS for word in words):
        raise ValueError(f"cat_threshold holds a number that has not {_SET_BITS} bits")
    found = {}
    for node in nodes:
        place = places[node]
        if place not in range(count):
            raise ValueError(f"a categorical split has the set {place:g} of {count}")
        own = words[ends[int(place)] : ends[int(place) + 1]]
        found[node] = sum(word << _SET_BITS * i for i, word in enumerate(own))
    return found


def _field(block: str, key: str, default: str | None = None) -> str:
    start = block.find(f"\n{key}=")
    if start < 0:
        if default is None:
            raise ValueError(f"{key} is missing")
        return default
    start += len(key) + 2
    return block[start : block.find("\n", start)]


def _ints(block: str, key: str) -> IntArray:
    numbers = [int(token) for token in _field(block, key).split()]
    if any(abs(number) > _GREATEST_INT for number in numbers):
        raise ValueError(f"{key} holds a number beyond {_GREATEST_INT}")
    return np.array(numbers, dtype=np.int64)


def _floats(block: str, key: str) -> FloatArray:
    return np.array([float(token) for token in _field(block, key).split()], dtype=np.float64)


def _check_mapping(mapped: dict[float, float]) -> None:
    if not np.isfinite(list(mapped.values())).all():
        raise ValueError("the mapping of thresholds leaves the finite numbers")
    for (old, new), (next_old, next_new) in pairwise(sorted(mapped.items())):
        if next_new < new:
            raise ValueError(f"the mapping of thresholds decreases between {old!r} and {next_old!r}")

"""Models for the tests: trained by official LightGBM, or written out by hand for it to load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lightgbm as lgb
import numpy as np


@dataclass(frozen=True)
class Node:
    """A split of a hand-written tree; a child that is a float is a leaf."""

    feature: int
    threshold: float
    left: Node | float
    right: Node | float


def model_text(trees: list[Node | float], n_features: int, version: str = "v4", **header: str) -> str:
    """LightGBM model text of these trees."""
    blocks = [f"Tree={i}\n{_tree_text(tree)}\n\n" for i, tree in enumerate(trees)]
    fields = {
        "version": version,
        "num_class": "1",
        "num_tree_per_iteration": "1",
        "label_index": "0",
        "max_feature_idx": str(n_features - 1),
        "objective": "regression",
        "feature_names": " ".join(f"Column_{i}" for i in range(n_features)),
        "feature_infos": " ".join(["[0:1]"] * n_features),
        "tree_sizes": " ".join(str(len(block)) for block in blocks),
        **header,
    }
    lines = "".join(f"{key}={value}\n" for key, value in fields.items())
    tail = "end of trees\n\nfeature_importances:\n\nparameters:\n[boosting: gbdt]\n\nend of parameters\n"
    return f"tree\n{lines}\n{''.join(blocks)}{tail}"


def _tree_text(tree: Node | float) -> str:
    nodes: list[list[Any]] = []
    leaves: list[float] = []

    def place(child: Node | float) -> int:
        if not isinstance(child, Node):
            leaves.append(child)
            return -len(leaves)
        number = len(nodes)
        nodes.append([child.feature, child.threshold, 0, 0])
        nodes[number][2] = place(child.left)
        nodes[number][3] = place(child.right)
        return number

    place(tree)
    feature, threshold, left, right = zip(*nodes, strict=True) if nodes else ((), (), (), ())
    fields = {
        "num_leaves": [len(leaves)],
        "num_cat": [0],
        "split_feature": feature,
        "split_gain": [1] * len(nodes),
        "threshold": [repr(float(t)) for t in threshold],
        "decision_type": [2] * len(nodes),
        "left_child": left,
        "right_child": right,
        "leaf_value": [repr(float(v)) for v in leaves],
        "leaf_weight": [1] * len(leaves),
        "leaf_count": [1] * len(leaves),
        "internal_value": [0] * len(nodes),
        "internal_weight": [1] * len(nodes),
        "internal_count": [1] * len(nodes),
        "is_linear": [0],
        "shrinkage": [1],
    }
    return "".join(f"{key}={' '.join(map(str, values))}\n" for key, values in fields.items())


def population(n: int, n_groups: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores (some exactly 0 and 1), memberships and residuals with group and pair effects."""
    rng = np.random.default_rng(seed)
    score = np.clip(rng.normal(0.5, 0.3, n), 0, 1)
    member = rng.random((n, n_groups)) < rng.uniform(0.05, 0.6, n_groups)
    effect = score[:, None] * member @ rng.normal(0, 0.2, n_groups) + 0.3 * (member[:, 0] & member[:, -1])
    return score, member, effect + np.sin(9 * score) / 5 + rng.normal(0, 0.2, n)


def features(score: np.ndarray, member: np.ndarray) -> np.ndarray:
    """Features in the order that the additive form expects."""
    return np.column_stack([score, member.astype(np.float64)])


def train(X: np.ndarray, y: np.ndarray, trees: int = 200, valid: Any = None, **params: Any) -> lgb.Booster:
    """Depth-2 ensemble by official LightGBM."""
    weight = params.pop("weight", None)
    callbacks = [lgb.early_stopping(params.pop("patience"), verbose=False)] if "patience" in params else []
    keep_all = params.pop("keep_training_booster", False)  # otherwise only the best iterations are kept
    settings = {
        "objective": "regression", "max_depth": 2, "num_leaves": 4, "learning_rate": 0.1, "seed": 3,
        "num_threads": 1, "verbose": -1, **params,
    }  # fmt: skip
    categorical = settings.pop("categorical_feature", "auto")
    data = lgb.Dataset(X, y, weight=weight, categorical_feature=categorical, params=settings)
    valid_sets = [lgb.Dataset(*valid, reference=data)] if valid else None
    return lgb.train(
        settings, data, trees, valid_sets=valid_sets, callbacks=callbacks, keep_training_booster=keep_all
    )

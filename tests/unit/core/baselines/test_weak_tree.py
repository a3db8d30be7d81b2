from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from mcspark.core.baselines.units import group_pairs
from mcspark.core.baselines.weak_tree import GroupTreeLearner, best_split, leaf_of


def learner(membership, signature, depth, min_rows=1):
    return GroupTreeLearner(membership, signature, group_pairs(membership, signature), depth, min_rows)


@pytest.mark.parametrize("min_rows", [1, 40])
@pytest.mark.parametrize("depth", [1, 2])
def test_equals_scikit_learn_on_the_rows_of_each_node(depth, min_rows):
    rng = np.random.default_rng(depth)
    table = rng.random((60, 9)) < 0.4
    signature, node = rng.integers(0, 60, 2000), rng.integers(0, 4, 2000)
    weight = rng.integers(1, 9, 2000).astype(float)
    target = np.tanh(table[signature] @ rng.normal(0, 1, 9) * (node - 1.5)) + rng.normal(0, 0.3, 2000)
    # Units are rows here: the learner must sum them by itself.
    sums = np.stack([np.ones(2000), weight, weight * target])
    trees = learner(table, signature, depth, min_rows).grow(sums, node, 5)
    ours = trees.value[node, leaf_of(trees.feature, table, node, signature)]
    for k in range(4):
        rows = node == k
        oracle = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=min_rows, random_state=0)
        oracle.fit(table[signature[rows]], target[rows], sample_weight=weight[rows])
        np.testing.assert_allclose(ours[rows], oracle.predict(table[signature[rows]]), rtol=0, atol=1e-12)
    assert trees.feature[4].tolist() == [-1, -1, -1]  # a node without units asks nothing


def test_equal_splits_go_to_the_first_group_and_useless_ones_are_not_made():
    a = np.array([1, 1, 0, 0], bool)
    everybody, useless = np.ones(4, bool), np.array([1, 0, 1, 0], bool)
    table = np.stack([everybody, useless, ~a, a], axis=1)
    sums = np.array([[3.0, 3, 3, 3], [0.1, 0.1, 0.1, 0.1], [0.1 / 3, 0.1 / 3, 0.02, 0.02]])
    trees = learner(table, np.arange(4), 2).grow(sums, np.zeros(4, int), 1)
    assert trees.feature.tolist() == [[2, -1, -1]]
    np.testing.assert_allclose(trees.value[0, [0, 2]], [1 / 3, 0.2])


def test_rounding_never_chooses_between_equal_splits():
    """Men and women are one question; which is asked must not hang on the last digit of a sum."""
    rng = np.random.default_rng(7)
    for _ in range(100):
        woman = rng.random(300) < 0.4
        table = np.stack([woman, ~woman], axis=1)[:, rng.permutation(2)]
        weight, target = rng.random(300), rng.random(300)
        sums = np.stack([np.ones(300), weight, weight * target])
        tree = learner(table, np.arange(300), 1).grow(sums, np.zeros(300, int), 1)
        assert tree.feature[0, 0] == 0


def test_no_side_is_smaller_than_asked():
    total = np.array([[10.0], [10.0], [3.0]])
    inside = np.array([[[2.0, 5.0]], [[2.0, 5.0]], [[2.0, 2.5]]])
    candidate, gain = best_split(inside, total, 1)
    assert candidate.tolist() == [0]
    assert gain[0] == pytest.approx(4 / 2 + 1 / 8 - 9 / 10)
    assert best_split(inside, total, 3)[0].tolist() == [1]
    assert best_split(inside, total, 6)[0].tolist() == [-1]


def test_no_groups_is_a_tree_of_one_leaf():
    trees = learner(np.zeros((1, 0), bool), np.zeros(3, int), 2).grow(np.ones((3, 3)), np.array([0, 0, 1]), 2)
    assert trees.feature.tolist() == [[-1] * 3] * 2
    assert trees.value[:, 0].tolist() == [1.0, 1.0]

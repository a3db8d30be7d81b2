"""Ensembles that the official LightGBM grows on the driver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from official_trainer import surprised

from mcspark.core.model.lightgbm_text import parse_trees
from mcspark.core.training.training_table import TreeSettings
from mcspark.ml.training.driver_training import DriverTrainer


@pytest.mark.parametrize("rate", [1.0, 0.25])
def test_no_tree_moves_the_log_odds_by_more_than_one(rate):
    settings = TreeSettings(link="logit", learning_rate=rate, max_trees=3)
    trees = parse_trees(DriverTrainer()(surprised(), settings))
    assert [max(abs(tree.leaf_value)) for tree in trees] == pytest.approx([1.0] * 3, abs=1e-12)


def test_threads_do_not_change_a_tree():
    rng = np.random.default_rng(3)
    member = rng.random((200, 12)) < 0.3
    place, signature = rng.integers(0, 100, 20_000), rng.integers(0, 200, 20_000)
    wrong = 0.2 * member[signature, 0] - 0.3 * member[signature, 1] * (place > 50)
    table = replace(
        surprised(len(place)),
        place=place, signature=signature, membership=member, offset=None,
        target=wrong + rng.normal(0, 0.4, len(place)), stop=rng.random(len(place)) < 0.3,
    )  # fmt: skip
    one, two = (parse_trees(DriverTrainer(n)(table, TreeSettings(learning_rate=0.3))) for n in (1, 2))
    assert len(one) == len(two) > 5
    for first, second in zip(one, two, strict=True):
        assert np.array_equal(first.split_feature, second.split_feature)
        assert np.array_equal(first.threshold, second.threshold)
        assert np.array_equal(first.leaf_value, second.leaf_value)


def test_a_residual_is_met_in_one_step_however_large():
    table = surprised()
    away = np.where(table.membership[table.signature, 0], 5.0, -5.0)
    settings = TreeSettings(learning_rate=1.0, max_trees=1)
    [tree] = parse_trees(DriverTrainer()(replace(table, target=away, offset=None), settings))
    assert np.abs(tree.leaf_value) == pytest.approx(np.full(len(tree.leaf_value), 5.0))

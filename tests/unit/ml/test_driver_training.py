"""Ensembles that the official LightGBM grows on the driver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from official_trainer import surprised

from mcspark.core.lightgbm_text import parse_trees
from mcspark.core.training_table import TreeSettings
from mcspark.ml.driver_training import DriverTrainer


@pytest.mark.parametrize("rate", [1.0, 0.25])
def test_no_tree_moves_the_log_odds_by_more_than_one_before_it_is_shrunk(rate):
    settings = TreeSettings(link="logit", learning_rate=rate, max_trees=3)
    trees = parse_trees(DriverTrainer()(surprised(), settings))
    assert [max(abs(tree.leaf_value)) for tree in trees] == pytest.approx([rate] * 3, abs=1e-12)


def test_a_residual_is_met_in_one_step_however_large():
    table = surprised()
    away = np.where(table.membership[table.signature, 0], 5.0, -5.0)
    settings = TreeSettings(learning_rate=1.0, max_trees=1)
    [tree] = parse_trees(DriverTrainer()(replace(table, target=away, offset=None), settings))
    assert np.abs(tree.leaf_value) == pytest.approx(np.full(len(tree.leaf_value), 5.0))

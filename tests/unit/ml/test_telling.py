"""What training on the driver says of how far it is, to whoever shows it."""

from __future__ import annotations

import re

import numpy as np
import pytest
import structlog

from mcspark.core.training.training_table import TrainingTable, TreeSettings
from mcspark.ml.training.driver_training import DriverTrainer


@pytest.fixture
def told():
    structlog.reset_defaults()  # whatever another test has set up, its level among it
    with structlog.testing.capture_logs() as events:
        yield events
    structlog.reset_defaults()


@pytest.fixture
def table():
    rng = np.random.default_rng(2)
    n = 400
    place = rng.integers(0, 10, n)
    return TrainingTable(
        place=place,
        signature=np.zeros(n, dtype=np.int64),
        membership=np.ones((1, 1), dtype=bool),
        target=place / 10 + rng.normal(0, 0.1, n),
        weight=np.ones(n),
        stop=rng.random(n) < 0.4,
        offset=None,
        min_weight_in_leaf=5.0,
        rows=np.ones(n),
        unit=1.0,
    )


def test_every_tree_of_the_driver_is_told_with_its_loss(told, table):
    DriverTrainer()(table, TreeSettings(max_trees=30, early_stopping_rounds=40))
    found = [re.fullmatch(r"(\d+) of at most 30 trees, held-out loss (0\.\d{6})", e["event"]) for e in told]
    assert [int(match[1]) for match in found] == list(range(1, 31))
    assert float(found[-1][2]) < 0.5 * float(found[0][2])
    assert {e["log_level"] for e in told} == {"debug"}


def test_nothing_is_told_where_nobody_has_set_up_a_log(table, capsys):
    structlog.reset_defaults()
    DriverTrainer()(table, TreeSettings(max_trees=3))
    assert capsys.readouterr() == ("", "")

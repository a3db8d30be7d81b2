"""Monotone trees: inside every signature the calibrated score never falls where the score rises."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from miscalibrated import FAST

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.training.recipe import fit_auto
from mcspark.core.training.rounds import fit_stages
from mcspark.ml.training.driver_training import DriverTrainer

N = 8000
EVERY = np.array(list(product([False, True], repeat=3)))
GRID = np.linspace(0, 1, 4001)
TRAIN = DriverTrainer()


@pytest.fixture(scope="module")
def cells():
    """Labels fall with the score in the middle, differently by group."""
    rng = np.random.default_rng(3)
    score, member = rng.random(N), rng.random((N, 3)) < 0.5
    truth = score + (0.4 + 0.3 * member[:, 0]) * np.sin(7 * score) * (1 - 0.5 * member[:, 1])
    label = (rng.random(N) < np.clip(truth, 0, 1)).astype(float)
    role = rng.choice([Role.fit, Role.early_stopping], N, p=[0.7, 0.3])
    return Cells.from_rows(score, label, member, bins=ScoreBins(60, (1,) * 60), role=role)


def largest_fall(stages):
    """Of the calibrated score from one grid score to the next, over all signatures."""
    return max(
        -np.diff(stages.apply_signatures(GRID, np.full(len(GRID), i), EVERY)).min() for i in range(len(EVERY))
    )


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("link", ["identity", "logit"])
def test_scores_never_fall_through_rounds_and_links(cells, link, refit):
    settings = replace(FAST, link=link, refit=refit, learning_rate=0.3, min_rows_in_leaf=5)
    free = fit_stages(cells, settings, TRAIN, rounds=2).stages
    bound = fit_stages(cells, replace(settings, monotone=True), TRAIN, rounds=2).stages
    assert largest_fall(free) > 0.05
    assert largest_fall(bound) <= 1e-15
    assert bound.trees > 0


def test_the_recipe_keeps_the_promise(cells):
    stages = fit_auto(cells, replace(FAST, monotone=True), TRAIN).fit.stages
    assert largest_fall(stages) <= 1e-15
    assert stages.trees > 0

"""Populations whose scores are wrong, for the tests of what learns from them."""

from __future__ import annotations

import numpy as np

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.training.training_table import TreeSettings

FAST = TreeSettings(learning_rate=0.3, max_trees=60, early_stopping_rounds=10)


def population(n=6000, seed=3):
    """Scores that are wrong by group and by level, weights, and all three roles."""
    rng = np.random.default_rng(seed)
    member = rng.random((n, 4)) < [0.5, 0.3, 0.2, 0.1]
    score = rng.random(n)
    truth = np.clip(
        score + 0.2 * member[:, 0] - 0.25 * member[:, 1] * (score > 0.5) + 0.1 * member[:, 3], 0, 1
    )
    label = (rng.random(n) < truth).astype(float)
    return score, label, member, rng.integers(1, 6, n).astype(float), rng.choice(3, n, p=[0.45, 0.25, 0.3])


def cells_of(rows=slice(None), depth=1):
    score, label, member, weight, role = population()
    bins = ScoreBins(60, (depth,) * 60)
    return Cells.from_rows(
        score[rows], label[rows], member[rows], bins=bins, weight=weight[rows], role=role[rows]
    )


def counterexample(rows=160, gamma=0.5):
    """The paper's three groups, balanced in each role: a constant score and labels with an XOR."""
    g = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)], dtype=bool)
    y = (1 - gamma) * (g @ [0.5, 0.25, 0.125]) + gamma * (g.sum(axis=1) % 2)
    member, label = np.tile(g, (3 * rows, 1)), np.tile(y, 3 * rows)
    role = np.repeat([Role.fit, Role.early_stopping, Role.test], 8 * rows)
    score = np.full(len(label), 0.4)
    return score, label, member, Cells.from_rows(score, label, member, bins=ScoreBins.uniform(60), role=role)


def applied(calibrator, score, membership):
    """Calibrated scores of rows that are given by their groups."""
    table, signature = np.unique(membership, axis=0, return_inverse=True)
    return calibrator.apply_signatures(score, signature.reshape(-1), table)

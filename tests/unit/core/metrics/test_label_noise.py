"""P-values of few rows and few positive labels, against exact binomial sums and labels drawn row by row."""

import numpy as np
import pytest
from scipy import stats

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.noise import noise_floor

BINS = ScoreBins.uniform(20)
ALPHAS = np.array([0.01, 0.05, 0.1])


def p_value(score, label, weight=None, draws=199, seed=0, grid=20):
    cells = Cells.from_rows(score, label, np.ones((len(score), 1)), bins=BINS, weight=weight)
    return noise_floor(cells, [20], draws, seed)[grid].p_value


def alike(rows, positive, mean):
    return np.full(rows, mean), (np.arange(rows) < positive) * 1.0


@pytest.mark.parametrize("weight", [None, 100.0, 0.1])
def test_no_positives_where_two_are_expected_are_no_surprise(weight):
    rows, mean = 50, 0.04
    count = np.arange(rows + 1)
    # The score stands for the middle of its level, 0.025; of the score itself, for 0.04.
    for grid, middle in ((20, 0.025), (None, mean)):
        far = np.abs(count - rows * middle) >= rows * middle - 1e-9
        exact = stats.binom.pmf(count, rows, mean)[far].sum()
        weights = None if weight is None else np.full(rows, weight)
        found = p_value(*alike(rows, 0, mean), weights, draws=4000, grid=grid)
        assert found == pytest.approx(exact, abs=0.03)
        assert found >= 0.13 - 0.02


@pytest.mark.parametrize(
    ("rows", "expected"), [(5, 0), (5, 1), (10, 0.5), (20, 2), (50, 1), (50, 2), (50, 5), (50, 20)]
)
def test_equal_rows_are_called_wrong_no_more_often_than_said(rows, expected):
    mean = expected / rows
    likely = stats.binom.pmf(np.arange(rows + 1), rows, mean)
    told = np.array(
        [p_value(*alike(rows, k, mean), draws=999) if likely[k] > 1e-4 else 0.0 for k in range(rows + 1)]
    )
    for alpha in ALPHAS:
        # A p-value near the limit may fall to either side of it by the chance of the draws.
        slack = 2.5 * np.sqrt(alpha / 999)
        assert likely[told <= alpha - slack].sum() <= alpha


@pytest.mark.parametrize(
    ("rows", "expected", "labels", "weighted"),
    [(20, 2, "binary", True), (50, 5, "binary", True), (50, 2, "rare", False), (50, 20, "rare", True)],
)
def test_other_rows_are_called_wrong_no_more_often_than_said(rows, expected, labels, weighted):
    rng, told, runs = np.random.default_rng(rows), [], 250
    score = np.full(rows, expected / rows)
    for seed in range(runs):
        weight = rng.exponential(size=rows) + 0.05 if weighted else None
        if labels == "binary":
            label = (rng.random(rows) < score) * 1.0
        else:  # mostly nought, otherwise anything
            label = (rng.random(rows) < 2 * score) * rng.random(rows)
        told.append(p_value(score, label, weight, draws=99, seed=seed))
    for alpha in ALPHAS:
        assert np.mean(np.array(told) <= alpha) <= alpha + 3 * np.sqrt(alpha / runs)

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


@pytest.mark.parametrize("expected", [1, 2, 5])
def test_chance_is_as_wide_as_that_of_rows_whose_weights_differ(expected):
    """Errors of labels drawn row by row exceed the upper end of chance as often as said.

    With the mean weight for each row instead of a share drawn anew, they do in 9 to 15 of 100 cases.
    """
    rng, rows, vectors = np.random.default_rng(expected), 50, 40
    score, beyond = np.full(rows, expected / rows), []
    for seed in range(vectors):
        weight = rng.exponential(size=rows)
        cells = Cells.from_rows(score, score * 0, np.ones((rows, 1)), bins=BINS, weight=weight)
        end = noise_floor(cells, [20], 1000, seed)[None].quantiles[0.95]
        error = np.abs((rng.random((4000, rows)) < score) @ weight - score @ weight) / weight.sum()
        beyond.append(np.mean(error > end))
    # The mean of 40 such shares has a standard error of 0.0015.
    assert 0.04 < np.mean(beyond) < 0.06


@pytest.mark.parametrize(("expected", "weighted"), [(1, False), (1, True), (2, False)])
def test_rare_labels_within_the_unit_interval_are_called_wrong_no_more_often_than_said(expected, weighted):
    """Mostly nought, otherwise anything: their own variance alone would call 15 to 27 of 100 tables wrong."""
    rng, rows, runs, told = np.random.default_rng(5), 50, 200, []
    score = np.full(rows, expected / rows)
    for seed in range(runs):
        label = (rng.random(rows) < 2 * score) * rng.random(rows)
        weight = rng.exponential(size=rows) if weighted else None
        told.append(p_value(score, label, weight, draws=99, seed=seed, grid=None))
    for alpha in ALPHAS:
        assert np.mean(np.array(told) <= alpha) <= alpha + 3 * np.sqrt(alpha / runs)

"""What chance alone shows, by drawing labels."""

import numpy as np
import pytest

from mcspark.core.metrics.detectable import rows_for, smallest_error


@pytest.mark.parametrize("m", [5, 20])
def test_levels_of_equal_weight_and_fair_coins_show_this_error(m):
    rng, rows = np.random.default_rng(3), 4000
    level = np.arange(rows) % m
    found = [np.abs(np.bincount(level, rng.integers(0, 2, rows) - 0.5)).sum() / rows for _ in range(400)]
    assert np.mean(found) == pytest.approx(smallest_error(rows, m), rel=0.03)


def test_other_levels_and_surer_labels_show_less():
    rng, rows = np.random.default_rng(4), 4000
    score = rng.beta(1, 3, rows)
    level = np.floor(score * 20).astype(int)
    found = [np.abs(np.bincount(level, (rng.random(rows) < score) - score)).sum() / rows for _ in range(100)]
    assert 0.4 * smallest_error(rows, 20) < np.mean(found) < smallest_error(rows, 20)


def test_rows_and_errors_belong_together():
    assert rows_for(0.01, 20) == 31831  # 5 · 20 / π · 1000
    assert smallest_error(rows_for(0.003, 75), 75) <= 0.003 < smallest_error(rows_for(0.003, 75) - 1, 75)
    assert smallest_error(1, 20) == 1.0

"""Sums by group and level against pandas, and against rows by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins, level_index
from mcspark.core.metrics.reliability import Reliability, reference_grid


@pytest.mark.parametrize(
    ("levels", "grid"), [((10, 20, 100), 20), ((10, 50, 30), 30), ((7,), 7), ((20,), 20), ((5, 10), 10)]
)
def test_the_grid_that_a_report_speaks_of(levels, grid):
    assert reference_grid(levels) == grid


def test_facts_are_those_of_a_group_by_on_the_rows():
    rng = np.random.default_rng(4)
    n, m = 4000, 10
    score, label, weight = rng.random(n), rng.random(n), rng.integers(1, 5, n).astype(float)
    member = rng.random((n, 2)) < (0.5, 0.1)
    cells = Cells.from_rows(
        score, label, member, bins=ScoreBins.uniform(20), weight=weight, groups=("a", "b")
    )
    found = {(f.group, f.level): f for f in Reliability.of(cells, m).facts()}
    table = pd.DataFrame({"level": level_index(score, m), "w": weight, "wf": weight * score})
    table["wy"], table["y"] = weight * label, label
    for group, rows in ((None, np.ones(n, bool)), ("a", member[:, 0]), ("b", member[:, 1])):
        sums = table[rows].groupby("level")[["w", "wf", "wy"]].sum()
        counts = table[rows].groupby("level").size()
        for level in range(m):
            fact = found[group, level]
            assert fact.rows == counts[level]
            assert fact.share == pytest.approx(sums["w"][level] / weight.sum(), rel=1e-12)
            assert fact.mean_score == pytest.approx(sums["wf"][level] / sums["w"][level], rel=1e-12)
            assert fact.mean_label == pytest.approx(sums["wy"][level] / sums["w"][level], rel=1e-12)


def test_the_error_of_the_mean_label_is_the_textbook_one():
    label = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.5])
    score = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.9])
    cells = Cells.from_rows(score, label, np.ones((6, 1), bool), bins=ScoreBins.uniform(2), groups=("all",))
    low, high = (f for f in Reliability.of(cells, 2).facts() if f.group == "all")
    assert low.error == pytest.approx(np.std(label[:5], ddof=1) / np.sqrt(5), rel=1e-12)
    assert (high.rows, high.error) == (1, None)


def test_levels_without_rows_and_groups_without_weight_are_left_out():
    weight = np.array([1.0, 0.0])
    member = np.array([[1, 0], [0, 1]], bool)
    score = np.array([0.2, 0.8])
    cells = Cells.from_rows(score, score, member, bins=ScoreBins.uniform(4), weight=weight)
    assert [(f.group, f.level) for f in Reliability.of(cells, 4).facts()] == [(None, 0), ("g0", 0)]

"""The comparison of two runs, on metrics tables that are written by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcspark.config import Drift
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.metrics import measure
from mcspark.pipelines.judging.drift import change_since, too_far
from mcspark.report.metrics_table import COLUMNS, MetricsTable, metrics_frame

LEVELS = 20


def table(shares, groups, errors, rows=1000, stage="before", grid=LEVELS):
    """Shares of rows by level, of groups, and (low, value, high) of the MC error by grid."""
    lines = [(None, "rows", None, None, rows, None)]
    lines += [(None, "level_share", None, grid, share, i) for i, share in enumerate(shares)]
    lines += [(None, f"level_{name}", None, grid, 0.0, i) for i in range(grid)
              for name in ("rows", "mean_score", "mean_label", "label_error")]  # fmt: skip
    lines += [(group, "share", None, None, share, None) for group, share in groups.items()]
    for m, (low, value, high) in errors.items():
        for name, number in (("mc_error_low", low), ("mc_error", value), ("mc_error_high", high)):
            lines.append(("A", name, None, m, number, None))
    lines += [(None, "level_sets", None, m, m, None) for m in {grid, *errors}]
    frame = pd.DataFrame(
        [("test", stage, metric, group, m, value, level) for group, metric, _, m, value, level in lines],
        columns=list(COLUMNS),
    )
    return MetricsTable(frame.astype({"value": "float64"}))


def test_runs_that_lead_with_two_grids_are_compared_on_the_finest_of_both():
    """A rare label once was told apart at 20 levels, and is no more: that is drift, and not a refusal."""
    score, *_ = np.random.default_rng(1).random((1, 4000))
    frames = []
    for values in (score * 0.5, score * 0.015):
        cells = Cells.from_rows(values, values * 0, np.ones((4000, 1)), bins=ScoreBins(300, (0,) * 300))
        found = measure(cells, (20, 75, 100), draws=5, seed=1, min_rows=1)
        frames.append(MetricsTable(metrics_frame({"before": found})))
    then, now = frames
    assert (then.grid, now.grid) == (20, 75)
    distance = change_since(now, then, "r1", "before").score_distance
    # Of the earlier scores 4 % are below 0.02, of those at hand all.
    assert distance == pytest.approx(0.96, abs=0.01)


def uniform():
    return np.full(LEVELS, 1 / LEVELS)


def moved(share):
    """A part of the rows of the lowest level in the highest."""
    shares = uniform()
    shares[0] -= share
    shares[-1] += share
    return shares


def test_nothing_has_changed():
    one = table(uniform(), {"A": 0.3, "B": 0.7}, {10: (0.01, 0.02, 0.03), 20: (0.02, 0.03, 0.04)})
    change = change_since(one, one, "r1", "before")
    assert (change.score_distance, change.share_change) == (0, 0)
    assert not any(e.worse for e in change.mc_error.values())
    assert too_far(Drift(max_score_distance=0, max_share_change=0, mc_error_must_hold=True), change) == []


def test_distances_by_hand():
    now = table(moved(0.04), {"A": 0.5, "C": 0.2}, {}, rows=400)
    then = table(uniform(), {"A": 0.3, "B": 0.05}, {}, rows=100, stage="after")
    change = change_since(now, then, "r1", "after")
    assert change.score_distance == pytest.approx(0.04)
    assert change.score_noise == pytest.approx(1.358 * (1 / 400 + 1 / 100) ** 0.5)
    assert (change.share_group, change.share_change) == ("A", pytest.approx(0.2))
    assert (change.share_then, change.share_now, change.stage) == (0.3, 0.5, "after")
    assert change.share_noise == pytest.approx(1.96 * (0.4 * 0.6 * (1 / 400 + 1 / 100)) ** 0.5)
    assert too_far(Drift(max_score_distance=0.05, max_share_change=0.21), change) == []
    problems = too_far(Drift(max_score_distance=0.03, max_share_change=0.19), change)
    assert len(problems) == 2
    assert "share of A has changed by 0.2000, allowed 0.19" in problems[1]
    gone = change_since(table(uniform(), {"C": 0.4}, {}), then, "r1", "after")
    assert (gone.share_group, gone.share_change) == ("C", pytest.approx(0.4))
    assert (gone.share_then, gone.share_now) == (0, 0.4)


@pytest.mark.parametrize(
    ("now", "then", "worse"),
    [
        ((0.05, 0.06, 0.07), (0.02, 0.03, 0.04), True),
        ((0.035, 0.06, 0.07), (0.02, 0.03, 0.04), False),  # the intervals meet
        ((0.05, 0.06, 0.07), (None, 0.03, None), True),
        ((0.02, 0.06, 0.07), (None, 0.03, None), False),
        ((0.01, 0.02, 0.03), (0.05, 0.06, 0.07), False),  # better
    ],
)
def test_worse_means_that_the_intervals_do_not_meet(now, then, worse):
    one, other = (table(uniform(), {"A": 1.0}, {20: ends}) for ends in (now, then))
    change = change_since(one, other, "r1", "before")
    assert change.mc_error[20].worse is worse
    problems = too_far(Drift(mc_error_must_hold=True), change)
    assert bool(problems) is worse
    assert too_far(Drift(), change) == []
    assert change.summary()["mc_error"]["20"]["then"] == then[1]


def test_what_cannot_be_compared_is_null():
    now = table(uniform(), {"A": 1.0}, {10: (0.1, 0.1, 0.1)})
    then = table(np.full(30, 1 / 30), {"A": 1.0}, {50: (0.1, 0.1, 0.1)}, grid=30)
    change = change_since(now, then, "r1", "before")
    assert (change.score_distance, change.score_noise, change.mc_error) == (None, None, {})
    nothing = change_since(now, table(uniform(), {"A": 1.0}, {}, rows=0), "r1", "before")
    assert (nothing.score_distance, nothing.share_change) == (None, None)
    every = Drift(max_score_distance=1, max_share_change=1, mc_error_must_hold=True)
    assert len([p for p in too_far(every, change) if "cannot be measured" in p]) == 2
    assert len([p for p in too_far(every, nothing) if "cannot be measured" in p]) == 3


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (lambda f: pd.concat([f, f]), "stand twice"),
        (lambda f: f.assign(value="much"), "'value' holds no numbers"),
        (lambda f: f.assign(levels="20"), "'levels' holds no numbers"),
    ],
)
def test_what_is_no_metrics_table_is_said(how, words):
    frame = table(uniform(), {"A": 1.0}, {10: (0.1, 0.1, 0.1)}).frame
    with pytest.raises(ValueError, match=words):
        MetricsTable(how(frame))


def of_scores(*values):
    """The metrics table of rows with these scores, one group, labels 0."""
    score = np.concatenate(values)
    cells = Cells.from_rows(score, score * 0, np.ones((len(score), 1)), bins=ScoreBins(300, (0,) * 300))
    return MetricsTable(metrics_frame({"before": measure(cells, (20, 75), draws=5, seed=1, min_rows=1)}))


def test_grids_that_are_blind_let_nothing_pass():
    """Scores a fiftieth of what they were: no grid sees it, so no limit holds, and none is said to."""
    score = np.random.default_rng(1).random(4000) * 0.01
    change = change_since(of_scores(score / 50), of_scores(score), "r1", "before")
    assert (change.score_distance, change.mc_error) == (None, {})
    problems = too_far(Drift(max_score_distance=1, mc_error_must_hold=True), change)
    assert len(problems) == 2
    assert all("one grid that sees" in problem for problem in problems)


def test_a_grid_that_sees_decides_beside_one_that_is_blind():
    low, high = np.full(3900, 0.01), np.full(3900, 0.04)
    then, now = of_scores(low, np.full(100, 0.5)), of_scores(high, np.full(100, 0.5))
    change = change_since(now, then, "r1", "before")
    assert change.score_distance == pytest.approx(0.975, abs=0.001)
    assert change.mc_error == {}  # at 75 levels each of the two scores is in one level
    spread = np.random.default_rng(2).random(4000) * 0.04
    seen = change_since(of_scores(spread), of_scores(spread), "r1", "before")
    assert set(seen.mc_error) == {75}

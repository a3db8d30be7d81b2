"""Which grids are blind and what is led with: rare labels, whose scores lie in a corner of [0, 1]."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.lead import FullestLevel, Lead
from mcspark.core.metrics.metrics import measure

LEVELS = (10, 20, 30, 50, 75, 100)
BINS = ScoreBins(300, (2,) * 300)
SETTINGS = {"draws": 100, "seed": 1, "min_rows": 2}


def rare(*, most=0.02, wrong=2.0, n=40_000, seed=1):
    """Scores below ``most``, 13 times too large: 0.1 % of labels are positive, of group A twice as many."""
    rng = np.random.default_rng(seed)
    score = rng.random(n) * most
    member = np.stack([rng.random(n) < 0.3, np.ones(n, dtype=bool)], axis=1)
    truth = score / 13
    label = (rng.random(n) < truth * np.where(member[:, 0], wrong, 1)).astype(float)
    return score, truth, label, member


def cells_of(score, label, member, weight=None):
    return Cells.from_rows(score, label, member, bins=BINS, weight=weight, groups=("A", "all"))


def test_the_first_grid_that_sees_is_led_with():
    score, _, label, member = rare()
    assert label.mean() == pytest.approx(0.001, rel=0.2)
    found = measure(cells_of(score, label, member), LEVELS, **SETTINGS)
    # Of scores spread evenly over [0, 0.02), the first level holds all up to a width of 1/50, then 2/3, 1/2.
    assert found.lead.blind_grids == (10, 20, 30, 50)
    assert [f.share for f in found.lead.blind] == [1.0] * 4
    assert found.fullest[75].share == pytest.approx(2 / 3, abs=0.01)
    assert (found.lead.levels, found.lead.grid, found.reliability.m) == (75, 75, 75)
    assert found.leading() == found.by_level[75].mc_error
    assert "at 10, 20, 30, 50 levels is blind" in found.lead.words()
    assert "100.0 % in [0, 0.02) of 50 levels" in found.lead.words()
    assert "leads with the multicalibration error at 75 levels" in found.lead.words()


def test_the_order_of_the_levels_decides_which_grid_comes_first():
    score, _, label, member = rare()
    assert measure(cells_of(score, label, member), (10, 20, 100, 75), **SETTINGS).lead.levels == 100


def test_where_no_grid_sees_the_ma_error_of_the_score_itself_is_led_with():
    score, truth, label, member = rare(most=0.0099)
    cells = [cells_of(values, label, member) for values in (score, truth)]
    lead = Lead.of(LEVELS, *cells)
    before, after = (measure(c, LEVELS, **SETTINGS, lead=lead) for c in cells)
    assert before.lead.blind_grids == LEVELS
    assert before.lead.levels is None
    # On any grid the error is what it was, to the last digit; the score's own has fallen.
    assert after.by_level[20].mc_error == before.by_level[20].mc_error
    gap = [abs(np.sum((s - label)[member[:, 1]])) / len(label) for s in (score, truth)]
    assert [found.leading() for found in (before, after)] == pytest.approx(gap, rel=1e-9)
    assert after.leading() < before.leading() / 5
    assert before.leading("p_value") == pytest.approx(1 / 101)
    summary = json.loads(json.dumps(before.summary(), allow_nan=False))
    assert summary["ma_error"] == before.leading()
    assert (summary["ma_worst_group"], summary["ma_p_value"]) == ("all", before.leading("p_value"))
    assert summary["ma_noise_floor"] == before.leading("noise_floor")
    assert summary["by_level"]["100"]["fullest_level_share"] == 1.0
    table = {(r.metric, r.group, r.levels): r.value for r in before.table()}
    assert table["ma_error", "all", None] == before.leading()
    assert table["ma_p_value", None, None] == before.leading("p_value")
    assert table["group_ma_error", "all", None] == pytest.approx(before.leading(), rel=1e-9)
    assert table["group_ma_error", "A", None] < before.leading()


def test_calibrated_scores_in_one_level_make_a_grid_blind_too():
    """At 75 levels the scores before are told apart; after, all that is measured is their rounding."""
    score, truth, label, member = rare()
    before, after = cells_of(score, label, member), cells_of(truth, label, member)
    lead = Lead.of(LEVELS, before, after)
    assert (lead.levels, lead.grid) == (None, 100)
    assert [(f.m, f.after) for f in lead.blind] == [(m, m > 50) for m in LEVELS]
    words = lead.words()
    assert "one level: before calibration 100.0 % in [0, 0.1) of 10 levels, " in words
    assert "; after calibration 100.0 % in [0, 0.01333) of 75 levels, 100.0 % in [0, 0.01) of 100" in words
    assert lead.summary()["blind"]["100"] == {"level": [0.0, 0.01], "share": 1.0, "after": True}


@pytest.mark.parametrize(("inside", "blind"), [(95, True), (94, False)])
def test_a_grid_is_blind_from_19_in_20_on_by_weight(inside, blind):
    score = np.where(np.arange(10) == 0, 0.51, 0.97)
    weight = np.where(np.arange(10) == 0, 100.0 - inside, inside / 9)
    cells = cells_of(score, np.ones(10), np.ones((10, 2), dtype=bool), weight)
    full = FullestLevel.of(cells, 20)
    assert (full.level, full.blind) == (19, blind)
    assert full.words() == f"{inside}.0 % in [0.95, 1] of 20 levels"


def test_scores_over_the_whole_range_leave_everything_as_it_was():
    rng = np.random.default_rng(2)
    score = rng.random(2000)
    found = measure(
        cells_of(score, (rng.random(2000) < score) * 1.0, np.ones((2000, 2), bool)), LEVELS, **SETTINGS
    )
    assert found.lead == Lead(20)
    assert found.lead.words() == ""
    assert found.lead.summary() == {"metric": "mc_error", "levels": 20, "blind": {}}


def test_rows_without_weight_are_blind_to_nothing():
    cells = cells_of(np.full(5, 0.01), np.zeros(5), np.ones((5, 2), dtype=bool), np.zeros(5))
    found = measure(cells, LEVELS, **SETTINGS)
    assert found.lead == Lead(20)
    assert found.leading() is None
    assert replace(found, lead=Lead(20)).summary()["by_level"]["10"]["fullest_level_share"] is None

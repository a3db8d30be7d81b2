"""Bins that partitions have in common, and cells that move with their mean score."""

import numpy as np
import pytest

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins

FINE, COARSE = ScoreBins(4, (3, 1, 0, 2)), ScoreBins(4, (1, 2, 0, 0))


def test_common_bins_are_unions_of_the_bins_of_each():
    common = ScoreBins.common([FINE, COARSE])
    assert common.depth == (1, 1, 0, 0)
    assert set(common.edges()) <= set(FINE.edges()) & set(COARSE.edges())
    score = np.random.default_rng(1).random(1000)
    for own in (FINE, COARSE):
        assert (common.assign(own.edges()[:-1])[own.assign(score)] == common.assign(score)).all()


def test_bins_of_other_base_levels_have_none_in_common():
    with pytest.raises(ValueError, match=r"bases \[4, 6\]"):
        ScoreBins.common([FINE, ScoreBins.uniform(6)])


def test_weights_of_bins_choose_what_weights_of_the_finest_would_as_far_as_they_go():
    fine = np.random.default_rng(2).gamma(0.02, size=4 * 1024)
    wanted = ScoreBins.from_fine_weights(4, fine, 40)
    own = wanted.at_least(4)
    weight = np.bincount(own.assign((np.arange(4096) + 0.5) / 4096), weights=fine, minlength=own.n_bins)
    assert own.for_weights(weight, 40) == wanted
    least = ScoreBins(4, (1, 1, 1, 1))
    whole = np.bincount(least.assign((np.arange(4096) + 0.5) / 4096), weights=fine, minlength=least.n_bins)
    assert least.for_weights(whole, 40).depth == tuple(min(d, 1) for d in wanted.depth)


def test_moved_cells_have_the_sums_of_rows_that_move_with_their_cell():
    rng = np.random.default_rng(3)
    score, label, weight = rng.random(500), rng.random(500), rng.random(500)
    member = rng.random((500, 2)) < 0.5
    cells = Cells.from_rows(score, label, member, bins=FINE, weight=weight)
    state = np.clip(cells.mean_score + rng.normal(0, 0.1, len(cells)), 0, 1)
    by = dict(
        zip(zip(cells.bin, cells.signature, strict=True), state - cells.score / cells.weight, strict=True)
    )
    signatures = [tuple(row) for row in cells.membership]
    place = [(b, signatures.index(tuple(m))) for b, m in zip(FINE.assign(score), member, strict=True)]
    rows = score + np.array([by[p] for p in place])
    moved = cells.moved(state, ScoreBins.uniform(20))
    for name, value in (("score", rows), ("score_sq", rows**2), ("score_label", rows * label)):
        assert getattr(moved, name).sum() == pytest.approx((weight * value).sum())
    assert moved.loss() == pytest.approx((weight * (rows - label) ** 2).sum() / weight.sum())
    assert moved.mean_score == pytest.approx(np.clip(moved.score / moved.weight, 0, 1), abs=1e-6)
    assert len(moved) <= len(cells)

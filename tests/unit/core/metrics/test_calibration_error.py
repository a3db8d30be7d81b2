import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins, level_index, level_value
from mcspark.core.metrics.calibration_error import (
    calibration_error,
    group_table,
    level_errors,
    multiaccuracy_error,
)

PAPER_GRIDS = (10, 20, 30, 50, 75, 100)


def cells_of(score, label, membership, *, base=300, weight=None):
    return Cells.from_rows(
        np.asarray(score, float),
        np.asarray(label, float),
        np.asarray(membership, bool),
        bins=ScoreBins.uniform(base),
        weight=weight,
    )


def test_four_rows_by_hand():
    membership = np.array([[1, 0], [1, 1], [1, 1], [1, 0]])
    errors = level_errors(cells_of([0.05, 0.15, 0.15, 0.95], [0, 0, 1, 1], membership), 10)
    assert_allclose(errors.mc, [0.2, 0.175], atol=1e-15)
    assert errors.mc_error == pytest.approx(0.2)
    assert errors.worst_group == "g0"
    assert errors.level_sets == 3
    assert errors.loss == pytest.approx((0.05**2 + 0.15**2 + 0.85**2 + 0.05**2) / 4)


def test_a_constant_score_stands_for_the_middle_of_its_level():
    errors = level_errors(cells_of([0.1] * 10, [0] * 9 + [1], np.ones((10, 1))), 10)
    assert errors.mc_error == pytest.approx(0.05)
    assert errors.level_sets == 1


def test_groups_that_know_the_label():
    label = np.tile([0.0, 1.0], 50)
    score = np.repeat([0.25, 0.75], 50)
    membership = np.stack([label == 1, label == 0, np.ones(100)], axis=1)
    assert_allclose(level_errors(cells_of(score, label, membership), 2).mc, [0.25] * 3)


def test_one_level_measures_the_distance_from_one_half():
    label = np.array([0.1, 0.2, 0.9, 0.4, 0.0])
    membership = np.array([[1, 1], [1, 0], [1, 1], [1, 0], [1, 0]])
    errors = level_errors(cells_of(np.linspace(0, 1, 5), label, membership), 1)
    assert errors.mc[0] == pytest.approx(abs(np.mean(0.5 - label)))
    assert_allclose(errors.mc, errors.ma)


@pytest.mark.parametrize("gamma", [0.5, 0.25, 0.9])
def test_the_counterexample_of_the_paper(gamma):
    groups = np.array(list(itertools.product([0, 1], repeat=3)))
    linear = (1 - gamma) * groups @ [0.5, 0.25, 0.125]
    label = linear + gamma * (groups.sum(axis=1) % 2)
    one_pass = linear + gamma / 2
    assert_allclose(calibration_error(one_pass, label, groups), [gamma / 4] * 3)
    assert np.mean((one_pass - label) ** 2) == pytest.approx(gamma**2 / 4)
    assert_allclose(calibration_error(label, label, groups), [0] * 3, atol=1e-15)


def test_multiaccuracy_by_hand():
    residual = np.array([0.5, -0.5, -0.5, 0.5, 0.5])
    label = np.where(residual > 0, 0.0, 1.0)
    membership = np.array([[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]])
    expected = [0, 0.1, 0.2, 0]
    assert_allclose(multiaccuracy_error(np.full(5, 0.5), label, membership), expected)
    errors = level_errors(cells_of([0.5] * 5, label, membership), 1)
    assert_allclose(errors.ma, expected)
    assert errors.ma_error == pytest.approx(0.2)
    assert errors.too_small.tolist() == [False, False, False, True]


def test_nothing_to_measure_gives_none_and_no_nan():
    no_rows = cells_of([], [], np.zeros((0, 2)))
    no_groups = cells_of([0.3], [1], np.zeros((1, 0)))
    no_weight = cells_of([0.3, 0.4], [1, 0], np.ones((2, 1)), weight=np.zeros(2))
    for cells in (no_rows, no_groups, no_weight):
        errors = level_errors(cells, 10)
        assert (errors.mc_error, errors.ma_error, errors.worst_group) == (None, None, None)
        assert not np.isnan(errors.mc).any()
        assert not np.isnan(errors.ma).any()
    assert level_errors(no_rows, 10).loss is None
    assert level_errors(no_groups, 10).loss == pytest.approx(0.65**2)
    assert level_errors(no_weight, 10).level_sets == 0


def test_small_groups_are_marked_and_cannot_be_worst():
    score = np.full(10, 0.55)
    label = np.concatenate([np.full(9, 0.55), [0.0]])
    membership = np.stack([np.arange(10) == 9, np.arange(10) < 9], axis=1)
    cells = cells_of(score, label, membership)
    assert level_errors(cells, 10, min_rows=1).worst_group == "g0"
    errors = level_errors(cells, 10, min_rows=2)
    assert errors.too_small.tolist() == [True, False]
    assert errors.worst_group == "g1"
    assert errors.mc[0] == pytest.approx(0.055)
    assert level_errors(cells, 10, min_rows=11).mc_error is None


def test_group_table_says_share_and_means():
    membership = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 0]])
    cells = cells_of([0.2, 0.4, 0.6], [0, 1, 0], membership, weight=np.array([2.0, 1.0, 1.0]))
    everyone, part, nobody = group_table(cells, level_errors(cells, 10))
    assert (everyone.rows, part.rows, nobody.rows) == (3, 2, 0)
    assert (everyone.share, part.share, nobody.share) == (1, 0.5, 0)
    assert everyone.mean_score == pytest.approx((0.4 + 0.4 + 0.6) / 4)
    assert part.mean_score == pytest.approx(0.5)
    assert part.mean_label == pytest.approx(0.5)
    assert nobody.mean_score is None
    assert nobody.mean_label is None
    assert nobody.too_small


def test_a_grid_that_is_no_union_of_bins_is_refused():
    with pytest.raises(ValueError, match="7 does not divide 300"):
        level_errors(cells_of([0.3], [1], np.ones((1, 1))), 7)


@st.composite
def tables(draw):
    n = draw(st.integers(1, 40))
    ticks = st.integers(0, 600)
    score = np.array(draw(st.lists(ticks, min_size=n, max_size=n))) / 600
    label = np.array(draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    weight = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), float)
    membership = np.array(
        draw(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=n, max_size=n))
    )
    return score, label, weight, membership


@given(tables(), st.sampled_from(PAPER_GRIDS))
@settings(max_examples=60, deadline=None)
def test_cells_agree_with_rows(table, m):
    score, label, weight, membership = table
    errors = level_errors(cells_of(score, label, membership, weight=weight), m)
    value = level_value(level_index(score, m), m)
    assert_allclose(errors.mc, calibration_error(value, label, membership, weight), atol=1e-14)
    assert_allclose(errors.ma, multiaccuracy_error(value, label, membership, weight), atol=1e-14)
    assert (errors.mc >= errors.ma - 1e-15).all()
    if weight.any():
        assert errors.loss == pytest.approx(np.average((value - label) ** 2, weights=weight), abs=1e-14)


@given(tables())
@settings(max_examples=60, deadline=None)
def test_a_weight_is_a_number_of_copies(table):
    score, label, weight, membership = table
    copies = np.repeat(np.arange(len(score)), weight.astype(int))
    once = cells_of(score, label, membership, weight=weight)
    copied = cells_of(score[copies], label[copies], membership[copies])
    for m in PAPER_GRIDS:
        a, b = level_errors(once, m), level_errors(copied, m)
        assert_allclose(a.mc, b.mc, atol=1e-12)
        assert_allclose(a.ma, b.ma, atol=1e-12)
        assert a.level_sets == b.level_sets


@given(tables())
@settings(max_examples=60, deadline=None)
def test_a_finer_grid_moves_the_error_by_no_more_than_the_middles_move(table):
    score, label, _, membership = table
    cells = cells_of(score, label, membership)
    share = membership.mean(axis=0)
    for coarse, fine in ((10, 20), (10, 100), (50, 100), (75, 150)):
        a, b = level_errors(cells, coarse).mc, level_errors(cells, fine).mc
        # Level sets only split, so what cancelled inside them may appear; middles move by (r - 1) / 2 fine.
        assert (b >= a - share * (fine // coarse - 1) / (2 * fine) - 1e-12).all()

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mcspark.core.cells.levels import (
    DEPTH_AT_ENDS,
    MAX_DEPTH,
    ScoreBins,
    base_levels,
    level_index,
    level_value,
)

PAPER_GRIDS = (10, 20, 30, 50, 75, 100)
LANDMARKS = (0.0, -0.0, 0.1, 0.29, 0.3, 0.57, 0.58, 0.7, 1.0)


def neighbours(values):
    near = [
        f(v) for v in values for f in (float, lambda v: np.nextafter(v, 2), lambda v: np.nextafter(v, -1))
    ]
    return np.array([v for v in near if 0 <= v <= 1])


def slow_index(score, m):
    """The last level that starts at or below the score, found by looking at all of them."""
    return max(k for k in range(m) if k / m <= score)


@pytest.mark.parametrize("m", [1, 2, 7, *PAPER_GRIDS, 300])
def test_landmarks_and_their_neighbours_fall_where_the_edges_say(m):
    scores = neighbours([*LANDMARKS, *(k / m for k in range(m + 1))])
    assert_array_equal(level_index(scores, m), [slow_index(s, m) for s in scores])


def test_the_traps_of_floating_point():
    assert level_index(np.array([0.29, 0.57, 0.58, 0.7, 1.0, 0.0, -0.0]), 100).tolist() == [
        29, 57, 58, 70, 99, 0, 0,
    ]  # fmt: skip
    assert level_index(np.array([0.1, 0.3, 0.7, 1.0]), 10).tolist() == [1, 3, 7, 9]
    below = np.nextafter(np.array([0.1, 0.3, 0.7, 1.0]), 0)
    assert level_index(below, 10).tolist() == [0, 2, 6, 9]


@given(st.floats(0, 1), st.sampled_from([1, 3, *PAPER_GRIDS, 300, 307_200]))
def test_every_score_is_in_exactly_one_level(score, m):
    k = int(level_index(np.array([score]), m)[0])
    assert 0 <= k < m
    assert k / m <= score
    assert score < (k + 1) / m or k == m - 1


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20), st.sampled_from(PAPER_GRIDS))
def test_a_higher_score_is_in_no_lower_level(scores, m):
    assert (np.diff(level_index(np.sort(np.array(scores)), m)) >= 0).all()


@given(st.floats(0, 1), st.sampled_from(PAPER_GRIDS), st.integers(1, 1024))
def test_nested_grids_never_disagree(score, m, factor):
    fine = level_index(np.array([score]), m * factor)
    assert_array_equal(fine // factor, level_index(np.array([score]), m))


def test_one_grid_a_row_is_allowed():
    scores = np.array([0.29, 0.29, 1.0])
    assert level_index(scores, np.array([100, 10, 50])).tolist() == [29, 2, 49]


@pytest.mark.parametrize("m", PAPER_GRIDS)
def test_a_level_stands_for_its_middle(m):
    exact = [float(Fraction(2 * k + 1, 2 * m)) for k in range(m)]
    assert_array_equal(level_value(np.arange(m), m), exact)
    assert_array_equal(level_index(level_value(np.arange(m), m), m), np.arange(m))


def test_the_base_of_the_paper():
    assert base_levels(PAPER_GRIDS) == 300
    assert base_levels([7]) == 7


@st.composite
def score_bins(draw):
    base = draw(st.sampled_from([1, 10, 60, 300]))
    depth = draw(st.lists(st.integers(0, MAX_DEPTH), min_size=base, max_size=base))
    return ScoreBins(base, tuple(depth))


@given(score_bins(), st.lists(st.floats(0, 1), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_a_score_is_between_the_edges_of_its_bin(bins, scores):
    edges = bins.edges()
    assert len(edges) == bins.n_bins + 1
    assert (edges[0], edges[-1]) == (0, 1)
    assert (np.diff(edges) > 0).all()
    scores = np.array([*scores, *neighbours(LANDMARKS), *edges[:50]])
    place = bins.assign(scores)
    assert (edges[place] <= scores).all()
    assert ((scores < edges[place + 1]) | (place == bins.n_bins - 1)).all()


@given(score_bins(), st.lists(st.floats(0, 1), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_every_grid_that_divides_the_base_is_a_union_of_bins(bins, scores):
    scores = np.array([*scores, *neighbours(LANDMARKS), *bins.edges()[:50]])
    for m in range(1, bins.base + 1):
        if bins.base % m == 0:
            assert_array_equal(bins.level_of_bin(m)[bins.assign(scores)], level_index(scores, m))


def test_a_grid_that_does_not_divide_the_base_is_refused():
    with pytest.raises(ValueError, match="7 does not divide 300"):
        ScoreBins.uniform(300).level_of_bin(7)


@given(score_bins())
@settings(max_examples=20, deadline=None)
def test_plain_form_and_back(bins):
    assert ScoreBins.from_dict(bins.to_dict()) == bins


@pytest.mark.parametrize(("base", "depth"), [(0, ()), (2, (0,)), (2, (0, -1)), (1, (MAX_DEPTH + 1,))])
def test_impossible_bins_are_refused(base, depth):
    with pytest.raises(ValueError, match="depth must"):
        ScoreBins(base, depth)


def test_bins_are_cut_where_the_weight_is():
    scores = np.random.default_rng(0).beta(20, 20, 50_000)
    fine = np.bincount(level_index(scores, 20 * 2**MAX_DEPTH), minlength=20 * 2**MAX_DEPTH).astype(float)
    bins = ScoreBins.from_fine_weights(20, fine, 64)
    weight = np.bincount(bins.assign(scores), minlength=bins.n_bins)
    assert weight.max() <= 50_000 / 64 * (1 + 1e-9)
    assert bins.depth[0] == bins.depth[-1] == DEPTH_AT_ENDS
    # No bin was cut in vain: a level one step shallower has a bin that is too heavy.
    level = np.repeat(np.arange(20), 2 ** np.array(bins.depth))
    for j in 1 + np.flatnonzero(bins.depth[1:-1]):
        assert weight[level == j].reshape(-1, 2).sum(axis=1).max() > 50_000 / 64


def test_an_atom_is_cut_as_deep_as_can_be_and_no_deeper():
    fine = np.zeros(10 * 2**MAX_DEPTH)
    fine[0] = 5.0
    assert ScoreBins.from_fine_weights(10, fine, 100).depth == (MAX_DEPTH, *[0] * 8, DEPTH_AT_ENDS)
    assert ScoreBins.from_fine_weights(10, fine, 0) == ScoreBins.uniform(10)
    assert ScoreBins.from_fine_weights(10, np.zeros(10 * 2**MAX_DEPTH), 100) == ScoreBins.uniform(10)


def test_the_width_of_a_bin_is_a_power_of_two_of_the_level():
    bins = ScoreBins(2, (0, 2))
    assert_allclose(bins.edges(), [0, 0.5, 0.625, 0.75, 0.875, 1])
    assert bins.starts.tolist() == [0, 1]
    assert bins.level_of_bin(2).tolist() == [0, 1, 1, 1, 1]

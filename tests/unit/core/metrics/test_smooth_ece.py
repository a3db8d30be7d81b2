import time

import numpy as np
import pytest
import relplot
from numpy.testing import assert_allclose

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.smooth_ece import group_smooth_ece, smooth_ece, smooth_ece_from_masses

TICKS = (np.arange(1000) + 0.5) / 1000
FINE = ScoreBins(300, (4,) * 300)


@pytest.mark.parametrize(
    ("score", "label", "expected"),
    [
        (np.full(4, 0.3), np.array([0, 1, 0, 1.0]), 0.19999),
        (np.full(3, 0.9), np.zeros(3), 0.89993),
        (np.array([0.6, 0.8, 0.2, 0.4]), np.array([0, 1, 0, 1.0]), 0.12993),
        (TICKS, TICKS**2, 0.16644),
    ],
)
def test_known_answers(score, label, expected):
    assert smooth_ece(score, label) == pytest.approx(expected, abs=1e-4)
    assert cells_value(score, label) == pytest.approx(expected, abs=1e-4)


def cells_value(score, label, bins=FINE, weight=None):
    cells = Cells.from_rows(score, label, np.ones((len(score), 1), bool), bins=bins, weight=weight)
    return group_smooth_ece(cells).overall


SCORES = {
    "uniform": lambda rng, n: rng.random(n),
    "atoms at both ends": lambda rng, n: np.clip(rng.normal(0.6, 0.4, n), 0, 1),
    "near zero": lambda rng, n: np.clip(rng.normal(0.08, 0.06, n), 0, 1),
    "constant": lambda rng, n: np.full(n, rng.random()),
}


def oracle(score, label):
    """relplot without its floor: it adds 1e-4 to the density, which copies of every row make vanish."""
    copies = 1 if len(score) > 100 else 100
    return relplot.smECE(np.repeat(score, copies), np.repeat(label, copies))


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 20, 300, 3000])
def test_equals_relplot(kind, binary, n):
    rng = np.random.default_rng([n, binary, sorted(SCORES).index(kind)])
    for _ in range(3):
        score = SCORES[kind](rng, n)
        truth = score**1.4
        label = (rng.random(n) < truth).astype(float) if binary else np.clip(rng.normal(truth, 0.1), 0, 1)
        assert smooth_ece(score, label) == pytest.approx(oracle(score, label), abs=1e-4)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("n", [3, 20, 300, 3000])
def test_cells_equal_relplot(binary, n):
    rng = np.random.default_rng([n, binary])
    for _ in range(6):
        score = rng.random(n)
        truth = score**1.4
        label = (rng.random(n) < truth).astype(float) if binary else np.clip(rng.normal(truth, 0.1), 0, 1)
        assert cells_value(score, label) == pytest.approx(oracle(score, label), abs=1e-4)


@pytest.mark.parametrize("n", [3, 5, 10])
def test_tiny_groups_are_close_to_relplot_with_its_floor_too(n):
    rng = np.random.default_rng(n)
    for _ in range(10):
        score, label = rng.random(n), rng.random(n)
        assert smooth_ece(score, label) == pytest.approx(relplot.smECE(score, label), abs=1e-4)


def test_base_bins_alone_are_close_on_a_calibrated_score():
    rng = np.random.default_rng(3)
    score = rng.beta(2, 3, 20_000)
    label = (rng.random(20_000) < score).astype(float)
    coarse = cells_value(score, label, ScoreBins.uniform(300))
    assert coarse == pytest.approx(relplot.smECE(score, label), abs=3e-4)


def test_groups_are_judged_each_alone_and_the_worst_named():
    rng = np.random.default_rng(7)
    score = rng.random(2000)
    membership = np.stack([rng.random(2000) < 0.1, rng.random(2000) < 0.5, np.zeros(2000, bool)], axis=1)
    label = np.clip(score - 0.3 * membership[:, 0], 0, 1)
    result = group_smooth_ece(Cells.from_rows(score, label, membership, bins=FINE))
    for i in range(2):
        inside = membership[:, i]
        assert result.groups[i] == pytest.approx(smooth_ece(score[inside], label[inside]), abs=1e-4)
    assert result.groups[2] == 0
    assert result.worst_group == "g0"
    assert result.worst == result.groups[0]
    assert result.worst_by_share == pytest.approx((result.groups * membership.mean(axis=0)).max())
    assert result.overall == pytest.approx(smooth_ece(score, label), abs=1e-4)


def test_a_small_group_cannot_be_worst():
    score = np.full(20, 0.5)
    label = np.concatenate([[1.0], np.full(19, 0.4)])
    membership = np.stack([np.arange(20) == 0, np.arange(20) > 0], axis=1)
    cells = Cells.from_rows(score, label, membership, bins=FINE)
    assert group_smooth_ece(cells).worst_group == "g0"
    result = group_smooth_ece(cells, min_rows=2)
    assert (result.worst_group, result.worst) == ("g1", pytest.approx(0.1))
    assert group_smooth_ece(cells, min_rows=21).worst is None


def test_nothing_to_measure():
    empty = Cells.from_rows(np.zeros(0), np.zeros(0), np.zeros((0, 2), bool), bins=FINE)
    result = group_smooth_ece(empty)
    assert (result.overall, result.worst, result.worst_group, result.worst_by_share) == (None,) * 4
    assert result.groups.tolist() == [0, 0]
    no_groups = Cells.from_rows(np.full(2, 0.4), np.zeros(2), np.zeros((2, 0), bool), bins=FINE)
    assert group_smooth_ece(no_groups).worst is None
    assert group_smooth_ece(no_groups).overall == pytest.approx(0.4)


def test_weight_two_is_the_row_twice_and_the_scale_of_weights_is_free():
    rng = np.random.default_rng(11)
    score, label = rng.random(200), rng.random(200)
    weight = rng.integers(0, 4, 200).astype(float)
    copies = np.repeat(np.arange(200), weight.astype(int))
    expected = smooth_ece(score[copies], label[copies])
    assert_allclose(smooth_ece(score, label, weight), expected, rtol=1e-12)
    assert_allclose(smooth_ece(score, label, weight * 1e-6), expected, rtol=1e-12)
    assert_allclose(
        cells_value(score, label, weight=weight), cells_value(score[copies], label[copies]), rtol=1e-12
    )


def test_a_perfect_score_has_no_error():
    score = np.random.default_rng(1).random(500)
    assert smooth_ece(score, score) == 0
    assert cells_value(score, score) == pytest.approx(0, abs=1e-12)


def test_three_hundred_groups_take_well_below_a_second():
    rng = np.random.default_rng(0)
    edges = np.linspace(0, 1, 1001)
    residual, weight = rng.normal(0, 0.1, (300, 1001)), np.ones((300, 1001))
    smooth_ece_from_masses(edges, residual[:1], weight[:1])
    start = time.process_time()
    smooth_ece_from_masses(edges, residual, weight)
    assert time.process_time() - start < 1.5

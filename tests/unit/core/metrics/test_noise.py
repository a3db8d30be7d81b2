import numpy as np
import pytest
from numpy.testing import assert_allclose

from mcspark.core.cells.atoms import Atoms, roll_up
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import ScoreBins, level_index, level_value
from mcspark.core.metrics.calibration_error import calibration_error, level_errors
from mcspark.core.metrics.intervals import bootstrap_intervals
from mcspark.core.metrics.noise import has_binary_labels, noise_floor, residual_variance
from mcspark.core.metrics.smooth_ece import group_smooth_ece

BINS = ScoreBins.uniform(300)
HUNDRED = ScoreBins.uniform(100)
TWENTY = ScoreBins.uniform(20)
GROUPS = 5


def population(rng, n, *, binary=True, weighted=False, shift=0.0):
    """Rows whose expected label is the score, but for ``shift`` in the first group."""
    score = rng.beta(2, 3, n)
    membership = rng.random((n, GROUPS)) < np.linspace(0.1, 0.8, GROUPS)
    truth = np.clip(score + shift * membership[:, 0], 0, 1)
    if binary:
        label = (rng.random(n) < truth).astype(float)
    else:
        # One group is far noisier than the rest.
        sharp = np.where(membership[:, 4], 30.0, 3.0)
        label = rng.beta(truth * sharp + 1e-9, (1 - truth) * sharp + 1e-9)
    weight = rng.exponential(size=n) + 0.1 if weighted else None
    return score, label, membership, weight


def cells_of(rows, bins=BINS):
    score, label, membership, weight = rows
    return Cells.from_rows(score, label, membership, bins=bins, weight=weight)


def test_atoms_keep_every_sum_of_group_and_level():
    rng = np.random.default_rng(0)
    score, label, membership, weight = population(rng, 3000, weighted=True)
    weight[:100] = 0
    role = rng.integers(0, 3, 3000)
    bins = ScoreBins(300, tuple(rng.integers(0, 4, 300)))
    cells = Cells.from_rows(score, label, membership, bins=bins, weight=weight, role=role)
    atoms = Atoms.of(cells)
    assert len(atoms) < len(cells)
    assert set(atoms.cells.role) == {int(Role.fit)}
    for name in ("weight", "score", "label", "score_label"):
        mine = atoms.group_sums(getattr(atoms.cells, name)[None])[0]
        assert_allclose(mine, cells.group_sums(name, 300), atol=1e-12)
        assert_allclose(roll_up(mine, 20), cells.group_sums(name, 20), atol=1e-12)


@pytest.mark.parametrize("binary", [True, False])
def test_binary_labels_are_recognised(binary):
    rows = population(np.random.default_rng(0), 500, binary=binary, weighted=True)
    assert has_binary_labels(cells_of(rows)) is binary


@pytest.mark.parametrize("weighted", [False, True])
def test_the_floor_is_what_drawing_the_labels_row_by_row_gives(weighted):
    rng = np.random.default_rng(3)
    score, label, membership, weight = population(rng, 1500, weighted=weighted)
    floor = noise_floor(cells_of((score, label, membership, weight)), [10, 100], draws=1000, seed=1)
    for m in (10, 100):
        value = level_value(level_index(score, m), m)
        drawn = [
            calibration_error(value, (rng.random(1500) < score) * 1.0, membership, weight).max()
            for _ in range(1000)
        ]
        assert floor[m].expected == pytest.approx(np.mean(drawn), rel=0.03)
        for q in (0.05, 0.5, 0.95):
            assert floor[m].quantiles[q] == pytest.approx(np.quantile(drawn, q), rel=0.06)


def test_the_variance_of_real_labels_is_found_though_the_score_is_wrong():
    rng = np.random.default_rng(5)
    n = 40_000
    score, membership = rng.random(n), rng.random((n, 2)) < 0.5
    spread = np.where(membership[:, 0], 0.1, 0.02)
    # Labels may leave [0, 1] here: only their moments matter.
    label = score + 0.2 * membership[:, 0] - 0.1 * membership[:, 1] + rng.normal(0, spread)
    cells = cells_of((score, label, membership, None))
    variance = residual_variance(cells, 10)
    for inside, expected in ((True, 0.01), (False, 0.0004)):
        own = cells.membership[cells.signature, 0] == inside
        assert np.average(variance[own], weights=cells.weight[own]) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("binary", "weighted"), [(True, False), (True, True), (False, False), (False, True)])
def test_the_p_value_is_uniform_when_the_score_is_the_truth(binary, weighted):
    p_values, ratio = [], []
    for seed in range(120):
        rows = population(
            np.random.default_rng([seed, binary, weighted]), 1500, binary=binary, weighted=weighted
        )
        # The bins of the grid itself: what finer ones would add is the time of their draws.
        floor = noise_floor(cells_of(rows, TWENTY), [20], draws=79, seed=seed)[20]
        p_values.append(floor.p_value)
        ratio.append(floor.observed / floor.expected)
    # Kolmogorov's distance stays below 1.63 / sqrt(120) in 99 of 100 cases.
    place = (np.arange(120) + 0.5) / 120
    assert np.abs(np.sort(p_values) - place).max() < 0.15
    assert np.mean(ratio) == pytest.approx(1, abs=0.07)


@pytest.mark.parametrize("binary", [True, False])
def test_a_wrong_score_is_no_chance(binary):
    rows = population(np.random.default_rng(2), 4000, binary=binary, shift=0.3)
    floor = noise_floor(cells_of(rows), [10, 20], draws=99)
    assert floor[20].p_value == 0.01
    assert floor[20].observed > floor[20].quantiles[0.95] > floor[20].expected


def test_the_same_seed_gives_the_same_floor_and_weights_may_be_scaled():
    score, label, membership, weight = population(np.random.default_rng(4), 800, weighted=True)
    first = noise_floor(cells_of((score, label, membership, weight)), [20], 50, seed=3)
    assert first == noise_floor(cells_of((score, label, membership, weight)), [20], 50, seed=3)
    assert first != noise_floor(cells_of((score, label, membership, weight)), [20], 50, seed=4)
    scaled = noise_floor(cells_of((score, label, membership, 8 * weight)), [20], 50, seed=3)
    assert scaled[20].expected == pytest.approx(first[20].expected, rel=1e-9)


def test_scores_of_nought_and_one_have_no_noise_of_their_own():
    score = np.tile([0.0, 1.0], 50)
    floor = noise_floor(cells_of((score, score, np.ones((100, 1)), None)), [10], 20)[10]
    assert floor.expected == pytest.approx(0.05)
    assert floor.quantiles[0.05] == pytest.approx(floor.quantiles[0.95])
    assert floor.p_value == 1


def test_nothing_to_judge_gives_none():
    empty = cells_of((np.zeros(0), np.zeros(0), np.zeros((0, 2)), None))
    no_groups = cells_of((np.full(3, 0.5), np.ones(3), np.zeros((3, 0)), None))
    no_weight = cells_of((np.full(3, 0.5), np.ones(3), np.ones((3, 1)), np.zeros(3)))
    for cells in (empty, no_groups, no_weight):
        floor = noise_floor(cells, [10], 5)[10]
        assert (floor.observed, floor.expected, floor.p_value, floor.quantiles) == (None, None, None, {})
        found = bootstrap_intervals(cells, [10], 5)
        for interval in (found.mc_error[10], found.smece):
            assert (interval.estimate, interval.low, interval.high) == (None, None, None)


def test_small_groups_are_not_judged():
    score, label, membership, _ = population(np.random.default_rng(6), 500)
    membership = np.concatenate([membership, np.arange(500)[:, None] < 3], axis=1)
    few = cells_of((score, label, membership, None))
    without = cells_of((score, label, membership[:, :-1], None))
    limited = noise_floor(few, [10], 200, min_rows=4)[10].expected
    assert limited == pytest.approx(noise_floor(without, [10], 200)[10].expected, rel=0.02)


def exact_errors(shift):
    """Errors of the population itself: its expected labels on very many rows."""
    rng = np.random.default_rng(99)
    score, _, membership, _ = population(rng, 300_000)
    truth = np.clip(score + shift * membership[:, 0], 0, 1)
    cells = cells_of((score, truth, membership, None))
    return level_errors(cells, 20).mc_error, group_smooth_ece(cells).worst


@pytest.mark.parametrize(
    ("binary", "weighted", "shift"),
    [(True, False, 0.0), (True, False, 0.3), (False, True, 0.2)],
)
def test_intervals_cover_the_error_of_the_population(binary, weighted, shift):
    error, smece = exact_errors(shift)
    hits = np.zeros(2)
    trials = 30
    for seed in range(trials):
        rng = np.random.default_rng([seed, binary, weighted, int(shift * 100)])
        rows = population(rng, 1200, binary=binary, weighted=weighted, shift=shift)
        found = bootstrap_intervals(cells_of(rows, HUNDRED), [20], draws=30, seed=seed, level=0.9)
        # A population error of nought is met to within a thousandth.
        for i, (interval, exact) in enumerate(((found.mc_error[20], error), (found.smece, smece))):
            hits[i] += interval.low - 1e-3 <= exact <= interval.high + 1e-3
    # Fewer hits have a probability of 0.01 at a coverage of 0.9; as many, one of 0.05 at 0.6.
    assert (hits >= 23).all(), hits


def test_an_interval_says_more_with_more_rows():
    width = {}
    for n in (1000, 16_000):
        rows = population(np.random.default_rng(n), n, shift=0.3)
        interval = bootstrap_intervals(cells_of(rows), [20], draws=100).mc_error[20]
        width[n] = interval.high - interval.low
        assert interval.estimate == level_errors(cells_of(rows), 20).mc_error
    assert width[16_000] < 0.5 * width[1000]
    assert width[16_000] > 0

"""Draws and sums of parts of the cells, put together, against the cells as a whole and against rows."""

from __future__ import annotations

import numpy as np
import pytest

from mcspark.core.cells.atoms import Atoms
from mcspark.core.cells.cells import SUMS, Cells
from mcspark.core.cells.derived import DERIVED
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.cells.ranked import Ranked, precise_hits, won_pairs
from mcspark.core.cells.summed import CellSums, add_exactly
from mcspark.core.metrics.intervals import SampleErrors, Tables, bootstrap_intervals
from mcspark.core.metrics.label_noise import fractional_variance, quantum
from mcspark.core.metrics.noise import LabelErrors, noise_floor, residual_variance
from mcspark.core.metrics.simulations import DrawnLabels, DrawnSamples, Part

BINS, LEVELS = ScoreBins(20, (2,) * 20), [10, 20]


def cells_of(*, binary):
    rng = np.random.default_rng(4)
    score, member = rng.random(3000), rng.random((3000, 4)) < [0.5, 0.3, 0.2, 0.05]
    truth = np.clip(score + 0.2 * member[:, 1], 0, 1)
    drawn = (rng.random(3000) < truth).astype(float)
    label = drawn if binary else np.clip(truth + 0.2 * rng.standard_normal(3000), 0, 1)
    weight = None if binary else rng.lognormal(0, 1, 3000)
    return Cells.from_rows(score, label, member, bins=BINS, weight=weight)


def sums_of(cells):
    sums = {name: np.vstack([cells.group_sums(name), cells.level_sums(name)]) for name in (*SUMS, *DERIVED)}
    return CellSums(cells.bins, cells.groups, sums, cells.ranked)


def total_of(simulation, cells):
    """The draws of every base level by itself, put together: shape (V, D, G, base)."""
    variance = None
    if not np.array_equal(cells.label, cells.label_sq):
        variance = fractional_variance(cells, residual_variance(cells, 10))
    found = []
    for level in range(20):
        here = BINS.level_of_bin(20)[cells.bin] == level
        atoms = Atoms.of(cells.take(here))
        own = None if variance is None else atoms.merge(variance[here])
        found.append(simulation.draw(np.random.default_rng([1, level]), Part(atoms, own)))
    return np.stack(found, axis=-1)


@pytest.mark.parametrize("binary", [True, False])
def test_labels_drawn_by_parts_have_the_floor_of_the_whole(binary):
    cells = cells_of(binary=binary)
    sums, judged, unit = sums_of(cells), np.ones(4, dtype=bool), quantum(cells)
    errors = LabelErrors.of(sums, LEVELS, judged, unit)
    found = errors(total_of(DrawnLabels(errors, judged, unit, 3000), cells)[0])
    assert found.shape == (3001, 3)
    floors = errors.floors(found[-1], found[:-1])
    for m, one in noise_floor(cells, LEVELS, 3000).items():
        assert floors[m].observed == pytest.approx(one.observed, rel=1e-9)
        assert floors[m].expected == pytest.approx(one.expected, rel=0.05)
        for q, value in one.quantiles.items():
            assert floors[m].quantiles[q] == pytest.approx(value, rel=0.12)


@pytest.mark.parametrize("binary", [True, False])
def test_samples_drawn_by_parts_have_the_intervals_of_the_whole(binary):
    cells = cells_of(binary=binary)
    sums, judged = sums_of(cells), np.ones(4, dtype=bool)
    errors = SampleErrors.of(Tables.of_sums(sums, judged), LEVELS)
    simulation = DrawnSamples(errors, judged, quantum(cells), 300)
    found = errors.intervals(sums, simulation.errors(total_of(simulation, cells)))
    wanted = bootstrap_intervals(cells, LEVELS, 300)
    for m in LEVELS:
        one, other = wanted.mc_error[m], found.mc_error[m]
        assert other.estimate == pytest.approx(one.estimate, rel=1e-9)
        assert (other.low, other.high) == pytest.approx((one.low, one.high), abs=0.15 * (one.high - one.low))
    assert found.smece.estimate == pytest.approx(wanted.smece.estimate, rel=1e-9)


def test_sums_by_level_are_those_of_the_cells():
    cells = cells_of(binary=False)
    sums = sums_of(cells)
    for m in (None, 10, 20):
        assert sums.loss(m) == pytest.approx(cells.loss(m), rel=1e-12)
        for name in (*SUMS, *DERIVED):
            assert sums.group_sums(name, m) == pytest.approx(cells.group_sums(name, m), rel=1e-12)
            assert sums.level_sums(name, m) == pytest.approx(cells.level_sums(name, m), rel=1e-12)


def test_runs_of_scores_add_up_to_the_areas_of_all():
    rng = np.random.default_rng(0)
    positive, negative = rng.random((2, 50))
    whole = Ranked.of_sides(positive, negative)
    pairs = sum(p * (negative[:i].sum() + negative[i] / 2) for i, p in enumerate(positive))
    assert whole.auc == pytest.approx(pairs / positive.sum() / negative.sum(), rel=1e-12)
    wins = hits = 0.0
    for run in (slice(0, 20), slice(20, 21), slice(21, 50)):
        above = positive[run.stop :].sum(), negative[run.stop :].sum()
        wins += won_pairs(positive[run], negative[run], negative[: run.start].sum())
        hits += precise_hits(positive[run][::-1], negative[run][::-1], above)
    found = Ranked.of_runs(wins, hits, positive.sum(), negative.sum())
    assert (found.auc, found.average_precision) == pytest.approx((whole.auc, whole.average_precision))
    assert Ranked.of_runs(0.0, 0.0, 0.0, 1.0) == Ranked(None, None)


def test_whole_numbers_are_added_without_rounding():
    rng = np.random.default_rng(0)
    place, value = rng.integers(0, 7, 1000), rng.integers(-(2**50), 2**50, 1000)
    value[0] = 2**60 + 1
    total = np.arange(7)
    add_exactly(total, place, value)
    wanted = [i + sum(int(v) for p, v in zip(place, value, strict=True) if p == i) for i in range(7)]
    assert total.tolist() == wanted

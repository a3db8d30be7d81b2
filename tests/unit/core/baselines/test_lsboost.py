from __future__ import annotations

import json

import numpy as np
import pytest
from miscalibrated import applied
from sklearn.tree import DecisionTreeRegressor

from mcspark.core.baselines.lsboost import LsboostFit, Subsample, fit_lsboost
from mcspark.core.baselines.units import Units
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins, level_index, level_value

BINS = ScoreBins.uniform(20)


def rows(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.random((n, 7)) < np.linspace(0.15, 0.7, 7)
    score = rng.random(n)
    score[:60] = np.arange(60) % 11 / 10  # on the edges of the levels
    label = np.clip(score + groups @ rng.normal(0, 0.15, 7) + rng.normal(0, 0.2, n), 0, 1)
    weight = rng.integers(1, 5, n).astype(float)
    return score, label, groups, weight


def halves(n=3000, seed=0):
    score, label, groups, weight = rows(n, seed)
    held = np.arange(n) % 3 == 0
    return [
        (score[r], label[r], groups[r], weight[r], Cells.from_rows(
            score[r], label[r], groups[r], bins=BINS, weight=weight[r]
        ))
        for r in (~held, held)
    ]  # fmt: skip


def brute_force(fit, stop, m, depth, rate):
    """Row by row, with scikit-learn's trees: rounds, and the levels of the fitting and held-out rows."""
    level = [level_index(part[0], m) for part in (fit, stop)]
    history = [level_value(level[1], m)]
    while True:
        now, moved = [array.copy() for array in level], False
        for k in range(m):
            here, held = now[0] == k, now[1] == k
            if not here.any() or not held.any():
                continue
            tree = DecisionTreeRegressor(max_depth=depth, random_state=0)
            tree.fit(fit[2][here], fit[1][here], sample_weight=fit[3][here])
            new = [
                level_index(
                    np.clip((1 - rate) * level_value(k, m) + rate * tree.predict(part[2][at]), 0, 1), m
                )
                for part, at in ((fit, here), (stop, held))
            ]
            label, weight = stop[1][held], stop[3][held]
            before = (weight * (level_value(k, m) - label) ** 2).sum()
            if (weight * (level_value(new[1], m) - label) ** 2).sum() < before - 1e-9:
                level[0][here], level[1][held] = new
                moved = True
        if not moved:
            return history
        history.append(level_value(level[1], m))


@pytest.mark.parametrize(("depth", "rate"), [(1, 1.0), (2, 1.0), (2, 0.3)])
def test_agrees_with_brute_force_round_by_round(depth, rate):
    fit, stop = halves()
    ours = fit_lsboost(fit[-1], stop[-1], 10, depth=depth, learning_rate=rate)
    history = brute_force(fit, stop, 10, depth, rate)
    assert len(ours.feature) == len(history) - 1 > 1
    for kept, expected in enumerate(history):
        prefix = LsboostFit(10, 7, ours.feature[:kept], ours.target[:kept])
        np.testing.assert_array_equal(applied(prefix, stop[0], stop[2]), expected)


def test_held_out_loss_falls_in_every_round():
    fit, stop = halves(seed=3)
    ours = fit_lsboost(fit[-1], stop[-1], 20, depth=2, subsample=0.5)
    assert len(ours.feature) > 5
    losses = []
    for kept in range(len(ours.feature) + 1):
        prefix = LsboostFit(20, 7, ours.feature[:kept], ours.target[:kept])
        losses.append(np.average((applied(prefix, stop[0], stop[2]) - stop[1]) ** 2, weights=stop[3]))
    assert np.all(np.diff(losses) < 0)


@pytest.mark.parametrize(("m", "depth", "subsample"), [(10, 1, 1.0), (20, 2, 1.0), (75, 2, 0.7)])
def test_the_test_error_falls(population, m, depth, subsample):
    fit = fit_lsboost(population.fit, population.stop, m, depth=depth, subsample=subsample)
    after = applied(fit, population.score, population.membership)
    assert set(np.unique(after)) <= set(level_value(np.arange(m), m))
    assert population.loss(after) < population.loss(population.score)
    assert population.mc_error(after, m) < 0.6 * population.mc_error(population.score, m)


def test_the_seed_decides_the_subsamples():
    fit, stop = halves()
    one, same, other = (
        fit_lsboost(fit[-1], stop[-1], 10, depth=2, subsample=0.4, seed=seed) for seed in (1, 1, 2)
    )
    assert one.to_dict() == same.to_dict()
    assert one.to_dict() != other.to_dict()


def test_a_subsample_of_cells_of_one_row_is_a_sample_of_rows():
    score, label, groups, weight = rows(300)
    cells = Cells.from_rows(score, label, groups, bins=ScoreBins(20, (10,) * 20), weight=weight)
    cells = cells.take(cells.n == 1)
    units = Units.from_cells(cells, 5)
    sample = Subsample(cells, units, 0.3, seed=1)
    kept = []
    for _ in range(400):
        n, w, _ = sample.draw()
        kept.append(n.sum() / len(cells))
        np.testing.assert_array_equal(n, np.round(n))
        assert np.all((n <= units.n) & (w <= units.weight + 1e-9))
    single = units.n == 1
    np.testing.assert_allclose(w[single], n[single] * units.weight[single])
    spread = np.sqrt(0.3 * 0.7 / len(cells))
    assert np.mean(kept) == pytest.approx(0.3, abs=4 * spread / 20)
    assert np.std(kept) == pytest.approx(spread, rel=0.15)


def test_nothing_to_learn_from_only_rounds():
    score, label, groups, _ = rows(80)
    cells = Cells.from_rows(score, label, groups, bins=BINS, weight=np.zeros(80))
    fit = fit_lsboost(cells, cells, 10)
    np.testing.assert_array_equal(applied(fit, score, groups), level_value(level_index(score, 10), 10))


def test_without_held_out_cells_the_fitting_cells_decide():
    fit, _ = halves()
    nothing = fit[-1].take(np.array([], dtype=int))
    assert fit_lsboost(fit[-1], nothing, 10).to_dict() == fit_lsboost(fit[-1], fit[-1], 10).to_dict()


def test_is_stored_as_json_and_checked_on_load():
    fit, stop = halves()
    ours = fit_lsboost(fit[-1], stop[-1], 10, depth=2)
    plain = json.loads(json.dumps(ours.to_dict()))
    loaded = LsboostFit.from_dict(plain)
    np.testing.assert_array_equal(applied(loaded, stop[0], stop[2]), applied(ours, stop[0], stop[2]))
    rounds = len(ours.feature)
    for name, value in (
        ("feature", np.full((rounds, 10, 3), 7).tolist()),
        ("feature", np.full((rounds, 9, 3), 0).tolist()),
        ("target", np.full((rounds, 10, 4), 10).tolist()),
        ("target", np.full((rounds + 1, 10, 4), 0).tolist()),
        ("target", [[0], [0, 1]]),
    ):
        with pytest.raises(ValueError, match=name):
            LsboostFit.from_dict({**plain, name: value})
    empty = LsboostFit(10, 7, ours.feature[:0], ours.target[:0])
    assert LsboostFit.from_dict(json.loads(json.dumps(empty.to_dict()))).feature.shape == (0, 10, 3)


@pytest.mark.parametrize("setting", [{"depth": 3}, {"learning_rate": 0.0}, {"subsample": 1.5}])
def test_refuses_settings_out_of_range(setting):
    fit, stop = halves(300)
    with pytest.raises(ValueError, match=next(iter(setting))):
        fit_lsboost(fit[-1], stop[-1], 10, **setting)

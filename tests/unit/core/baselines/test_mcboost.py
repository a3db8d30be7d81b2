from __future__ import annotations

import json

import numpy as np
import pytest
from miscalibrated import applied

from mcspark.core.baselines.mcboost import McboostFit, fit_mcboost
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins, level_index, level_value


def brute_force(score, label, groups, weight, m):
    """The algorithm row by row, with no sums kept."""
    level, patches = level_index(score, m), []
    while True:
        best, patch = 0.0, None
        for g in range(groups.shape[1]):
            for k in range(m):
                rows = groups[:, g] & (level == k)
                if not weight[rows].sum():
                    continue
                v, mean = level_value(k, m), np.average(label[rows], weights=weight[rows])
                new = int(level_index(mean, m))
                violation = weight[rows].sum() * (v - mean) ** 2
                gains = abs(v - mean) > abs(level_value(new, m) - mean) + 1e-12
                if gains and violation > best * (1 + 1e-9):
                    best, patch = violation, (g, k, new)
        if patch is None:
            return patches, level_value(level, m)
        patches.append(patch)
        level[groups[:, patch[0]] & (level == patch[1])] = patch[2]


def rows(n=500, seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.random((n, 7)) < np.linspace(0.15, 0.7, 7)
    score = rng.random(n)
    score[:60] = np.arange(60) % 11 / 10  # on the edges of the levels
    label = np.clip(score + groups @ rng.normal(0, 0.15, 7) + rng.normal(0, 0.2, n), 0, 1)
    weight = rng.integers(0, 5, n).astype(float)
    return score, label, groups, weight


@pytest.mark.parametrize(("m", "seed"), [(5, 0), (10, 1), (20, 2)])
def test_agrees_with_brute_force_patch_by_patch(m, seed):
    score, label, groups, weight = rows(seed=seed)
    cells = Cells.from_rows(score, label, groups, bins=ScoreBins.uniform(20), weight=weight)
    fit = fit_mcboost(cells, cells.take(np.array([], dtype=int)), m)
    patches, calibrated = brute_force(score, label, groups, weight, m)
    assert len(patches) > 15
    assert list(zip(fit.group.tolist(), fit.source.tolist(), fit.target.tolist(), strict=True)) == patches
    np.testing.assert_array_equal(applied(fit, score, groups), calibrated)


def test_held_out_loss_keeps_the_best_prefix():
    score, label, groups, weight = rows(900, seed=5)
    bins, held = ScoreBins.uniform(20), np.arange(900) % 3 == 0
    fit_cells, stop_cells = (
        Cells.from_rows(score[r], label[r], groups[r], bins=bins, weight=weight[r]) for r in (~held, held)
    )
    fit = fit_mcboost(fit_cells, stop_cells, 20, patience=1000)
    patches, _ = brute_force(score[~held], label[~held], groups[~held], weight[~held], 20)
    columns = np.array(patches).T
    losses = []
    for kept in range(len(patches) + 1):
        prefix = McboostFit(20, 7, *columns[:, :kept])
        after = applied(prefix, score[held], groups[held])
        losses.append(np.average((after - label[held]) ** 2, weights=weight[held]))
    assert len(fit.group) == int(np.argmin(losses))
    assert 0 < len(fit.group) < len(patches)
    impatient = fit_mcboost(fit_cells, stop_cells, 20, patience=3)
    rises = next(k for k in range(len(losses)) if min(losses[k + 1 : k + 4], default=1) >= losses[k])
    assert len(impatient.group) == rises


def test_the_cells_of_the_base_grid_give_the_patches_of_the_rows_on_every_grid(population):
    """The bins are finer than the level sets: units must be those of the level set, not of the bin."""
    fine = fit_mcboost(population.fit, population.stop, 20)
    role = population.role
    coarse = Cells.from_rows(
        population.score,
        population.label,
        population.membership,
        bins=ScoreBins.uniform(20),
        weight=population.weight,
        role=role,
    )
    same = fit_mcboost(coarse.take(coarse.role == 0), coarse.take(coarse.role == 1), 20)
    assert fine.to_dict() == same.to_dict()


@pytest.mark.parametrize("m", [10, 20, 75])
def test_the_test_error_falls(population, m):
    fit = fit_mcboost(population.fit, population.stop, m)
    after = applied(fit, population.score, population.membership)
    assert set(np.unique(after)) <= set(level_value(np.arange(m), m))
    assert population.loss(after) < population.loss(population.score)
    assert population.mc_error(after, m) < 0.5 * population.mc_error(population.score, m)


def test_nothing_to_learn_from_only_rounds():
    score, label, groups, _ = rows(80)
    cells = Cells.from_rows(score, label, groups, bins=ScoreBins.uniform(10), weight=np.zeros(80))
    fit = fit_mcboost(cells, cells, 10)
    np.testing.assert_array_equal(applied(fit, score, groups), level_value(level_index(score, 10), 10))


def test_no_rows_and_unseen_signatures():
    score, label, groups, weight = rows()
    cells = Cells.from_rows(score, label, groups, bins=ScoreBins.uniform(10), weight=weight)
    fit = fit_mcboost(cells, cells, 10)
    assert applied(fit, score[:0], groups[:0]).shape == (0,)
    nowhere = applied(fit, np.array([0.31]), np.zeros((1, 7), bool))
    np.testing.assert_array_equal(nowhere, [0.35])


def test_is_stored_as_json_and_checked_on_load():
    score, label, groups, weight = rows()
    cells = Cells.from_rows(score, label, groups, bins=ScoreBins.uniform(10), weight=weight)
    fit = fit_mcboost(cells, cells, 10)
    plain = json.loads(json.dumps(fit.to_dict()))
    loaded = McboostFit.from_dict(plain)
    np.testing.assert_array_equal(applied(loaded, score, groups), applied(fit, score, groups))
    for name, value in (
        ("m", 0),
        ("m", 10.0),
        ("m", 10**9),
        ("n_groups", True),
        ("group", [7] * len(fit.group)),
        ("source", [10] * len(fit.group)),
        ("target", [-1] * len(fit.group)),
        ("target", [0] * (len(fit.group) + 1)),
        ("target", [0.5] * len(fit.group)),
    ):
        with pytest.raises(ValueError, match=name):
            McboostFit.from_dict({**plain, name: value})
    with pytest.raises(ValueError, match="mapping"):
        McboostFit.from_dict([plain])


def test_refuses_a_grid_that_is_no_union_of_bins():
    score, label, groups, weight = rows()
    cells = Cells.from_rows(score, label, groups, bins=ScoreBins.uniform(20), weight=weight)
    with pytest.raises(ValueError, match="does not divide"):
        fit_mcboost(cells, cells, 30)

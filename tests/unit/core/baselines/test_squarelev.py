from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from miscalibrated import applied
from sklearn.tree import DecisionTreeRegressor

from mcspark.core.baselines.squarelev import SquarelevFit, fit_squarelev
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.model.tree import Tree

BINS = ScoreBins(20, (2, 0, 1, 3) * 5)


def rows(n=2500, seed=0):
    """Scores well inside their bins, so that CART's midpoints part the rows as the edges do."""
    rng = np.random.default_rng(seed)
    groups = rng.random((n, 6)) < np.linspace(0.15, 0.7, 6)
    edges = BINS.edges()
    place = rng.integers(0, BINS.n_bins, n)
    score = edges[place] + (edges[place + 1] - edges[place]) * rng.uniform(0.2, 0.8, n)
    label = np.clip(0.7 * score + groups @ rng.normal(0.05, 0.15, 6) + rng.normal(0, 0.2, n), 0, 1)
    weight = rng.integers(1, 5, n).astype(float)
    return score, label, groups, weight


def cells_of(score, label, groups, weight):
    return Cells.from_rows(score, label, groups, bins=BINS, weight=weight)


def nothing(cells):
    return cells.take(np.array([], dtype=int))


def variance(x, weight):
    return np.average((x - np.average(x, weights=weight)) ** 2, weights=weight)


@pytest.mark.parametrize("min_rows", [1, 60])
def test_agrees_with_the_algorithm_on_rows_step_by_step(min_rows):
    score, label, groups, weight = rows()
    cells = cells_of(score, label, groups, weight)
    fit = fit_squarelev(cells, nothing(cells), max_rounds=25, min_rows_in_leaf=min_rows)
    assert len(fit.alpha) == 25
    features = np.column_stack([BINS.assign(score), groups])
    residual = label - score
    for step in range(25):
        centred = residual - np.average(residual, weights=weight)
        tree = DecisionTreeRegressor(max_depth=2, min_samples_leaf=min_rows, random_state=0)
        hypothesis = tree.fit(features, centred, sample_weight=weight).predict(features)
        spread, left = variance(hypothesis, weight), variance(residual, weight)
        shared = np.average(centred * (hypothesis - np.average(hypothesis, weights=weight)), weights=weight)
        assert fit.edge[step] == pytest.approx(shared / np.sqrt(spread * left), abs=1e-9)
        assert fit.alpha[step] == pytest.approx(shared / spread, abs=1e-9)
        assert fit.variance[step] == pytest.approx(left, abs=1e-12)
        residual = residual - shared / spread * hypothesis
        correction = first(fit, step + 1).form.evaluate(score, groups)
        np.testing.assert_allclose(score + correction + residual, label, rtol=0, atol=1e-9)
    assert fit.intercept == pytest.approx(np.average(residual, weights=weight), abs=1e-12)


def first(fit, n):
    """The first trees alone, without the intercept."""
    return replace(
        fit,
        alpha=fit.alpha[:n],
        feature=fit.feature[:n],
        threshold=fit.threshold[:n],
        value=fit.value[:n],
        edge=fit.edge[:n],
        variance=fit.variance[: n + 1],
        intercept=0.0,
    )


def test_the_variance_falls_by_one_minus_the_edge_squared(population):
    fit = fit_squarelev(population.fit, nothing(population.fit), max_rounds=60)
    assert len(fit.edge) == 60
    assert np.all((fit.edge > 0) & (fit.edge <= 1))
    np.testing.assert_allclose(fit.variance, fit.variance_bound, rtol=1e-9)
    assert np.all(fit.variance <= fit.variance_bound * (1 + 1e-9))
    assert np.all(np.diff(fit.variance) < 0)
    rows_fit = population.role == 0
    residual = (
        population.label - population.score - fit.form.evaluate(population.score, population.membership)
    )
    weight = population.weight[rows_fit]
    assert variance(residual[rows_fit], weight) == pytest.approx(fit.variance[-1], rel=1e-9)
    assert np.average(residual[rows_fit], weights=weight) == pytest.approx(0, abs=1e-12)


def test_rows_on_an_edge_are_scored_in_the_bin_they_were_learned_in():
    edges = BINS.edges()[:-1]
    score = np.concatenate([edges, np.nextafter(edges[1:], 0), [1.0]])
    rng = np.random.default_rng(1)
    label, groups = rng.random(len(score)), rng.random((len(score), 2)) < 0.5
    cells = cells_of(score, label, groups, np.ones(len(score)))
    fit = fit_squarelev(cells, nothing(cells), max_rounds=30, min_rows_in_leaf=1)
    left = label - score - fit.form.evaluate(score, groups)
    assert np.mean(left**2) == pytest.approx(fit.variance[-1], abs=1e-12)


@pytest.mark.parametrize("seed", range(40, 160, 5))
def test_what_rounding_has_left_is_not_learned(seed):
    """A tree of mean residuals has α = 1; few rows are soon fitted, and then α was up to 1e31."""
    cells = cells_of(*rows(int(np.random.default_rng(seed).integers(2, 12)), seed))
    fit = fit_squarelev(cells, nothing(cells), max_rounds=200, min_rows_in_leaf=1)
    np.testing.assert_allclose(fit.alpha, 1, atol=1e-4)
    SquarelevFit.from_dict(fit.to_dict())


def test_held_out_loss_keeps_the_best_prefix():
    score, label, groups, weight = rows(3000, seed=2)
    held = np.arange(3000) % 3 == 0
    fit_cells, stop_cells = (cells_of(score[r], label[r], groups[r], weight[r]) for r in (~held, held))
    fit = fit_squarelev(fit_cells, stop_cells, max_rounds=80, patience=80, min_rows_in_leaf=1)
    everything = fit_squarelev(fit_cells, nothing(stop_cells), max_rounds=80, min_rows_in_leaf=1)
    losses = []
    for n in range(81):
        residual = label - score - first(everything, n).form.evaluate(score, groups)
        residual = residual - np.average(residual[~held], weights=weight[~held])
        losses.append(np.average(residual[held] ** 2, weights=weight[held]))
    assert len(fit.alpha) == int(np.argmin(losses))
    assert 0 < len(fit.alpha) < 80
    np.testing.assert_array_equal(fit.value, everything.value[: len(fit.alpha)])
    impatient = fit_squarelev(fit_cells, stop_cells, max_rounds=80, patience=2, min_rows_in_leaf=1)
    assert len(impatient.alpha) == next(k for k in range(80) if min(losses[k + 1 : k + 3]) >= losses[k])


def walk(tree: Tree, row: np.ndarray) -> float:
    """LightGBM's reading of its own layout."""
    node = 0 if len(tree.split_feature) else -1
    while node >= 0:
        left = row[tree.split_feature[node]] <= tree.threshold[node]
        node = (tree.left_child if left else tree.right_child)[node]
    return tree.leaf_value[-node - 1]


def test_trees_of_every_shape_are_laid_out_as_lightgbm_does():
    none, score, group = -1, 0, 2
    feature = np.array(
        [
            [none, none, none],
            [score, none, none],
            [group, score, none],
            [group, none, 1],
            [score, 1, score],
            [group, 1, score],
        ]
    )
    edge = 0.3
    fit = SquarelevFit(
        n_groups=2,
        intercept=0.01,
        alpha=np.linspace(0.5, 1, 6),
        feature=feature,
        threshold=np.where(feature == 0, [np.nextafter(edge, 0), edge / 2, 0.6], 0.5),
        value=np.arange(24.0).reshape(6, 4) / 1000,
        edge=np.full(6, 0.1),
        variance=np.ones(7),
    )
    score = np.array([0.0, 0.1, 0.15, np.nextafter(edge, 0), edge, 0.6, 0.7, 0.9])
    score, groups = np.tile(score, 4), np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 8, axis=0).astype(bool)
    table = np.column_stack([score, groups])
    expected = [
        s + 0.01 + sum(walk(tree, row) for tree in fit.trees()) for s, row in zip(score, table, strict=True)
    ]
    np.testing.assert_allclose(applied(fit, score, groups), np.clip(expected, 0, 1), rtol=0, atol=1e-14)
    root = np.where(feature[:, 0] == -1, 0, 1)
    assert [len(tree.split_feature) for tree in fit.trees()] == (root + (feature[:, 1:] >= 0).sum(1)).tolist()


def test_the_test_error_falls(population):
    fit = fit_squarelev(population.fit, population.stop)
    after = applied(fit, population.score, population.membership)
    assert after.min() >= 0
    assert after.max() <= 1
    assert population.loss(after) < population.loss(population.score)
    for m in (10, 20, 75):
        assert population.mc_error(after, m) < 0.4 * population.mc_error(population.score, m)


def test_nothing_to_learn_from_changes_nothing():
    score, label, groups, _ = rows(60)
    cells = cells_of(score, label, groups, np.zeros(60))
    fit = fit_squarelev(cells, cells)
    np.testing.assert_array_equal(applied(fit, score, groups), score)
    perfect = cells_of(score, score, groups, np.ones(60))
    np.testing.assert_allclose(applied(fit_squarelev(perfect, perfect), score, groups), score, atol=1e-12)


def test_is_stored_as_json_and_checked_on_load():
    score, label, groups, weight = rows()
    cells = cells_of(score, label, groups, weight)
    fit = fit_squarelev(cells, cells, max_rounds=4)
    plain = json.loads(json.dumps(fit.to_dict()))
    loaded = SquarelevFit.from_dict(plain)
    np.testing.assert_array_equal(applied(loaded, score, groups), applied(fit, score, groups))
    for name, value in (
        ("n_groups", -1),
        ("intercept", float("inf")),
        ("alpha", [1.0] * 5),
        ("feature", [[7, 0, 0]] * 4),
        ("threshold", [[2.0, 0.5, 0.5]] * 4),
        ("value", [[float("nan"), 0.0, 0.0, 0.0]] * 4),
        ("edge", [1.5] * 4),
        ("variance", [0.1] * 4),
    ):
        with pytest.raises(ValueError, match=name if name != "alpha" else "feature"):
            SquarelevFit.from_dict({**plain, name: value})


def test_refuses_cells_of_other_bins():
    score, label, groups, weight = rows(100)
    other = Cells.from_rows(score, label, groups, bins=ScoreBins.uniform(20), weight=weight)
    with pytest.raises(ValueError, match="same bins"):
        fit_squarelev(cells_of(score, label, groups, weight), other)

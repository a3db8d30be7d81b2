from __future__ import annotations

import json

import numpy as np
import pytest
from miscalibrated import applied
from sklearn.linear_model import Lasso, LinearRegression

from mcspark.core.baselines.multiaccuracy import (
    PENALTIES,
    MultiaccuracyFit,
    fit_multiaccuracy,
    multiaccuracy_path,
)
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import ScoreBins


def rows(n=3000, seed=3):
    """Overlapping groups, two of them a partition, and one of everybody."""
    rng = np.random.default_rng(seed)
    groups = rng.random((n, 8)) < rng.uniform(0.1, 0.6, 8)
    groups = np.concatenate([groups, ~groups[:, :1], np.ones((n, 1), bool)], axis=1)
    score = rng.beta(2, 3, n)
    label = np.clip(score + groups @ rng.normal(0, 0.08, groups.shape[1]) + rng.normal(0, 0.1, n), 0, 1)
    weight = rng.integers(1, 8, n).astype(float)
    return score, label, groups, weight


@pytest.mark.parametrize("penalty", PENALTIES)
def test_equals_scikit_learn_on_the_rows(penalty):
    score, label, groups, weight = rows()
    cells = Cells.from_rows(score, label, groups, bins=ScoreBins.uniform(30), weight=weight)
    (fit,) = multiaccuracy_path(cells, [penalty])
    design = groups.astype(float)
    if penalty == 0:
        oracle = LinearRegression().fit(design, label - score, sample_weight=weight)
    else:
        oracle = Lasso(alpha=penalty, tol=1e-13, max_iter=200_000).fit(
            design, label - score, sample_weight=weight
        )
    np.testing.assert_allclose(
        applied(fit, score, groups), np.clip(score + oracle.predict(design), 0, 1), rtol=0, atol=1e-6
    )
    if penalty == 0:  # the least norm is unique even where the groups are collinear
        np.testing.assert_allclose(fit.coefficient, oracle.coef_, rtol=0, atol=1e-6)


def test_the_path_is_the_single_fits_whatever_the_order():
    score, label, groups, weight = rows()
    cells = Cells.from_rows(score, label, groups, bins=ScoreBins.uniform(30), weight=weight)
    for together in multiaccuracy_path(cells, (1e-4, 1e-2, 0.0, 1e-3)):
        (alone,) = multiaccuracy_path(cells, [together.penalty])
        np.testing.assert_allclose(
            applied(alone, score, groups), applied(together, score, groups), rtol=0, atol=1e-7
        )


def test_no_penalty_leaves_no_group_off_on_average():
    score, label, groups, weight = rows()
    cells = Cells.from_rows(score, label, groups, bins=ScoreBins.uniform(30), weight=weight)
    (fit,) = multiaccuracy_path(cells, [0.0])
    shifted = score + fit.intercept + groups @ fit.coefficient
    off = groups.T @ (weight * (shifted - label)) / weight.sum()
    np.testing.assert_allclose(off, 0, atol=1e-12)


def test_weight_two_is_the_row_twice():
    score, label, groups, _ = rows(400)
    twice = np.arange(400) % 3 == 0
    again = np.concatenate([np.arange(400), np.flatnonzero(twice)])
    bins = ScoreBins.uniform(30)
    weighted = Cells.from_rows(score, label, groups, bins=bins, weight=1.0 + twice)
    repeated = Cells.from_rows(score[again], label[again], groups[again], bins=bins)
    for a, b in zip(multiaccuracy_path(weighted), multiaccuracy_path(repeated), strict=True):
        np.testing.assert_allclose(applied(a, score, groups), applied(b, score, groups), rtol=0, atol=1e-9)


def test_held_out_loss_chooses_and_the_test_error_falls(population):
    fit = fit_multiaccuracy(population.fit, population.stop)
    losses = [other.loss(population.stop) for other in multiaccuracy_path(population.fit)]
    assert fit.loss(population.stop) == pytest.approx(min(losses), abs=1e-15)
    after = applied(fit, population.score, population.membership)
    test = population.of_role(Role.test)
    assert fit.loss(population.cells.of_role(Role.test)) == pytest.approx(
        np.average(
            (
                population.score[test]
                + fit.intercept
                + population.membership[test] @ fit.coefficient
                - population.label[test]
            )
            ** 2,
            weights=population.weight[test],
        ),
        abs=1e-12,
    )
    assert population.loss(after) < population.loss(population.score)
    assert population.mc_error(after, 20) < 0.7 * population.mc_error(population.score, 20)


def test_nothing_to_learn_from_changes_nothing():
    score, label, groups, _ = rows(50)
    empty = Cells.from_rows(score, label, groups, bins=ScoreBins.uniform(30), weight=np.zeros(50))
    fit = fit_multiaccuracy(empty, empty)
    np.testing.assert_array_equal(applied(fit, score, groups), score)


def test_is_stored_as_json_and_checked_on_load():
    score, label, groups, _ = rows(200)
    cells = Cells.from_rows(score, label, groups, bins=ScoreBins.uniform(30))
    fit = fit_multiaccuracy(cells, cells)
    plain = json.loads(json.dumps(fit.to_dict()))
    loaded = MultiaccuracyFit.from_dict(plain)
    np.testing.assert_array_equal(applied(loaded, score, groups), applied(fit, score, groups))
    for name, value in (
        ("penalty", -1.0),
        ("intercept", float("nan")),
        ("intercept", "0"),
        ("coefficient", [0.1, float("inf")]),
        ("coefficient", [[0.1]]),
        ("coefficient", ["x"]),
        ("coefficient", 0.1),
    ):
        with pytest.raises(ValueError, match=name):
            MultiaccuracyFit.from_dict({**plain, name: value})
    with pytest.raises(ValueError, match="no entry 'penalty'"):
        MultiaccuracyFit.from_dict({k: v for k, v in plain.items() if k != "penalty"})


def test_refuses_what_it_cannot_use():
    score, label, groups, _ = rows(50)
    cells = Cells.from_rows(score, label, groups, bins=ScoreBins.uniform(30))
    with pytest.raises(ValueError, match="at least 0"):
        multiaccuracy_path(cells, [-1e-3])
    with pytest.raises(ValueError, match="10"):
        applied(fit_multiaccuracy(cells, cells), score, groups[:, :3])

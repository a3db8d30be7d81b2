"""Isotonic, Platt and temperature scaling beside scikit-learn, by group, and stored."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from mcspark.core.baselines.recalibration import ISOTONIC, PLATT, TEMPERATURE, fit_isotonic, fit_logit
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import ScoreBins

BINS = ScoreBins.uniform(300)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(4)
    score = np.round(rng.uniform(0.02, 0.98, 5000), 2)
    member = rng.random((5000, 3)) < [0.5, 0.3, 0.0]
    odds = 0.6 * np.log(score / (1 - score)) + 0.4 - 0.8 * member[:, 0]
    label = (rng.random(5000) < 1 / (1 + np.exp(-odds))).astype(float)
    return score, label, rng.exponential(size=5000) + 0.1, member


def cells_of(rows, where=slice(None)):
    score, label, weight, member = (values[where] for values in rows)
    return Cells.from_rows(score, label, member, bins=BINS, weight=weight)


def applied(fit, score, member):
    return fit.apply_signatures(score, np.arange(len(score)), member)


def logit(score):
    return np.log(score / (1 - score))


def test_isotonic_is_scikit_learns(rows):
    score, label, weight, member = rows
    wanted = IsotonicRegression(out_of_bounds="clip").fit(score, label, sample_weight=weight)
    found = applied(fit_isotonic(cells_of(rows)), score, member)
    np.testing.assert_allclose(found, wanted.predict(score), rtol=0, atol=1e-9)
    between = np.linspace(0, 1, 997)
    found = applied(fit_isotonic(cells_of(rows)), between, np.zeros((997, 3), dtype=bool))
    np.testing.assert_allclose(found, wanted.predict(between), rtol=0, atol=1e-9)


@pytest.mark.parametrize("shift", [True, False])
def test_platt_and_temperature_are_logistic_regressions(rows, shift):
    score, label, weight, member = rows
    wanted = LogisticRegression(C=1e12, fit_intercept=shift, tol=1e-10, max_iter=1000)
    wanted.fit(logit(score)[:, None], label, sample_weight=weight)
    fit = fit_logit(cells_of(rows), shift=shift)
    assert fit.slope[0] == pytest.approx(wanted.coef_[0, 0], abs=1e-5)
    assert fit.shift[0] == pytest.approx(wanted.intercept_[0] if shift else 0.0, abs=1e-5)
    wanted = wanted.predict_proba(logit(score)[:, None])[:, 1]
    np.testing.assert_allclose(applied(fit, score, member), wanted, rtol=0, atol=1e-5)


def test_by_group_a_row_gets_the_mean_of_the_maps_of_its_groups(rows):
    score, *_, member = rows
    of = [fit_logit(cells_of(rows, member[:, g])) for g in (0, 1)]
    whole, fit = fit_logit(cells_of(rows)), fit_logit(cells_of(rows), by_group=True)
    assert fit.slope == pytest.approx(
        [whole.slope[0], of[0].slope[0], of[1].slope[0], whole.slope[0]], abs=1e-6
    )
    found = applied(fit, score, member)
    odds = {
        (False, False): whole.slope[0] * logit(score) + whole.shift[0],
        (True, False): of[0].slope[0] * logit(score) + of[0].shift[0],
        (False, True): of[1].slope[0] * logit(score) + of[1].shift[0],
    }
    odds[True, True] = (odds[True, False] + odds[False, True]) / 2
    for (first, second), value in odds.items():
        inside = (member[:, 0] == first) & (member[:, 1] == second)
        np.testing.assert_allclose(found[inside], 1 / (1 + np.exp(-value[inside])), rtol=0, atol=1e-6)


def test_isotonic_by_group_does_not_fall_inside_a_group(rows):
    score, *_, member = rows
    fit = fit_isotonic(cells_of(rows), by_group=True)
    grid = np.linspace(0, 1, 500)
    for row in np.unique(member, axis=0):
        found = applied(fit, grid, np.tile(row, (500, 1)))
        assert np.all(np.diff(found) >= -1e-12)
    loss = [np.mean((applied(f, score, member) - rows[1]) ** 2) for f in (fit, fit_isotonic(cells_of(rows)))]
    assert loss[0] < loss[1]


@pytest.mark.parametrize("method", [ISOTONIC, PLATT, TEMPERATURE], ids=lambda m: m.name)
@pytest.mark.parametrize("by_group", [0, 1])
def test_a_stored_fit_scores_alike_and_a_torn_one_is_refused(rows, method, by_group):
    score, *_, member = rows
    fit = method.learn(cells_of(rows), {"by_group": by_group})
    plain = fit.to_dict()
    again = method.from_dict(plain)
    np.testing.assert_array_equal(applied(again, score, member), applied(fit, score, member))
    for name, value in plain.items():
        torn = value[:-1] if isinstance(value, list) else value + 1.5
        with pytest.raises(ValueError, match=r"."):
            method.from_dict({**plain, name: torn} if by_group or name != "value" else {**plain, name: []})


@pytest.mark.parametrize("method", [ISOTONIC, PLATT, TEMPERATURE], ids=lambda m: m.name)
@pytest.mark.parametrize("by_group", [0, 1])
@pytest.mark.parametrize(
    ("score", "label", "weight"),
    [
        ([0.2, 0.8], [0.0, 1.0], 1.0),
        ([0.0, 1.0], [1.0, 0.0], 1.0),
        ([0.5], [1.0], 1.0),
        ([0.4, 0.6], [1.0, 0.0], 0.0),
    ],
)
def test_few_rows_separable_labels_and_no_weight_give_scores_all_the_same(
    method, by_group, score, label, weight
):
    score, label = np.array(score), np.array(label)
    member = np.ones((len(score), 1), dtype=bool)
    cells = Cells.from_rows(score, label, member, bins=BINS, weight=np.full(len(score), weight))
    found = applied(method.learn(cells, {"by_group": by_group}), score, member)
    assert np.all((found >= 0) & (found <= 1))
    if not weight:
        np.testing.assert_allclose(found, score, rtol=0, atol=1e-5)


@pytest.mark.parametrize("method", [ISOTONIC, PLATT, TEMPERATURE], ids=lambda m: m.name)
def test_nothing_is_learned_from_test_rows(rows, method):
    score, label, weight, member = rows
    role = np.arange(len(score)) % 3
    cells = Cells.from_rows(score, label, member, bins=BINS, weight=weight, role=role)
    wanted, found = (method.learn(c, {}) for c in (cells_of(rows, role != Role.test), cells))
    np.testing.assert_allclose(
        applied(found, score, member), applied(wanted, score, member), rtol=0, atol=1e-9
    )

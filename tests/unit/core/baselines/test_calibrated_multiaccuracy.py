"""Calibrated multiaccuracy: scikit-learn's isotonic regression of the multiaccurate score, and stored."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression

from mcspark.core.baselines.calibrated_multiaccuracy import METHOD, CalibratedFit, calibrated
from mcspark.core.baselines.multiaccuracy import fit_multiaccuracy
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import ScoreBins

N = 6000


@pytest.fixture(scope="module")
def rows():
    """Scores of two decimals that are off by group, and bent for everybody."""
    rng = np.random.default_rng(9)
    score = np.round(rng.uniform(0.05, 0.95, N), 2)
    member = rng.random((N, 2)) < [0.5, 0.3]
    truth = np.clip(score**2 + 0.2 * member[:, 0] - 0.1 * member[:, 1], 0, 1)
    return score, (rng.random(N) < truth).astype(float), rng.exponential(size=N) + 0.1, member


@pytest.fixture(scope="module")
def cells(rows):
    score, label, weight, member = rows
    return Cells.from_rows(score, label, member, bins=ScoreBins.uniform(50_000), weight=weight)


def test_the_score_of_a_regression_on_the_groups_is_made_isotonic(rows, cells):
    score, label, weight, member = rows
    residual = LinearRegression().fit(member, label - score, sample_weight=weight)
    first = np.clip(score + residual.predict(member), 0, 1)
    wanted = IsotonicRegression(out_of_bounds="clip").fit_transform(first, label, sample_weight=weight)
    fit = calibrated(fit_multiaccuracy(cells, cells, [0.0]), cells)
    found = fit.apply_signatures(score, np.arange(N), member)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-7)
    loss, before = (np.average((f - label) ** 2, weights=weight) for f in (found, first))
    assert loss < before


def test_where_everybody_is_in_one_bin_it_is_the_mean_label(rows):
    score, label, weight, member = rows
    few = Cells.from_rows(score, label, member, bins=ScoreBins.uniform(1), weight=weight)
    fit = calibrated(fit_multiaccuracy(few, few, [1.0]), few)
    found = fit.apply_signatures(score, np.arange(N), member)
    np.testing.assert_allclose(found, np.average(label, weights=weight), atol=1e-12)


def test_it_learns_from_the_fitting_and_the_early_stopping_rows(rows):
    score, label, weight, member = rows
    role = np.where(np.arange(N) % 3 == 0, Role.early_stopping, Role.fit)
    role[::7] = Role.test
    label = np.where(role == Role.test, 1 - label, label)
    cells = Cells.from_rows(score, label, member, bins=ScoreBins.uniform(1000), weight=weight, role=role)
    penalties = [0.0, 1e-3]
    fit = METHOD.learn(cells, {"penalties": penalties})
    first = fit_multiaccuracy(cells.of_role(Role.fit), cells.of_role(Role.early_stopping), penalties)
    wanted = calibrated(first, cells.of_role(Role.fit, Role.early_stopping))
    assert fit.to_dict() == wanted.to_dict()


def test_nothing_to_learn_from_changes_nothing(cells):
    nobody = cells.take(np.zeros(len(cells), dtype=bool))
    fit = METHOD.learn(nobody, {})
    score = np.array([0.0, 0.3, 1.0])
    found = fit.apply_signatures(score, np.zeros(3, int), np.zeros((1, 2), bool))
    np.testing.assert_array_equal(found, score)


def test_it_is_stored_and_read_back(rows, cells):
    score, _, _, member = rows
    fit = calibrated(fit_multiaccuracy(cells, cells, [1e-4]), cells)
    again = CalibratedFit.from_dict(json.loads(json.dumps(fit.to_dict())))
    one, other = (f.apply_signatures(score, np.arange(N), member) for f in (fit, again))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda plain: plain.pop("then"), "a mapping of first and then"),
        (lambda plain: plain.update(more=1), "a mapping of first and then"),
        (lambda plain: plain.update(first=None), "stored as a mapping"),
        (lambda plain: plain["then"].update(n_groups=3), "about the groups of the first"),
        (lambda plain: plain["then"].update(value=plain["then"]["value"] * 3), "one for everybody"),
    ],
)
def test_anything_else_is_refused(cells, change, words):
    plain = calibrated(fit_multiaccuracy(cells, cells, [1e-4]), cells).to_dict()
    change(plain)
    with pytest.raises(ValueError, match=words):
        CalibratedFit.from_dict(plain)

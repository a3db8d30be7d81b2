"""The unit of the weights means nothing: persons, thousands of persons, or shares that sum to 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from miscalibrated import FAST, applied, population
from official_trainer import official

from mcspark.core.baselines.lsboost import fit_lsboost
from mcspark.core.baselines.mcboost import fit_mcboost
from mcspark.core.baselines.multiaccuracy import fit_multiaccuracy
from mcspark.core.baselines.squarelev import fit_squarelev
from mcspark.core.cells.atoms import Atoms
from mcspark.core.cells.cells import Cells, Role, effective_rows
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.intervals import bootstrap_intervals
from mcspark.core.metrics.noise import noise_floor
from mcspark.core.training.rounds import fit_stages
from mcspark.core.training.training_table import rows_of_weight, training_table

SCORE, LABEL, MEMBER, WEIGHT, ROLE = population(3000)
UNEQUAL = np.random.default_rng(5).lognormal(0, 1, len(WEIGHT))
WEIGHTS = {"constant": np.ones(len(WEIGHT)), "whole": WEIGHT, "unequal": UNEQUAL}


def cells_of(weight, label=LABEL):
    return Cells.from_rows(SCORE, label, MEMBER, bins=ScoreBins(60, (1,) * 60), weight=weight, role=ROLE)


def baseline(fit, **settings):
    return lambda cells: fit(cells.of_role(Role.fit), cells.of_role(Role.early_stopping), **settings)


def trees(**settings):
    return lambda cells: fit_stages(cells, replace(FAST, **settings), official).stages


METHODS = {
    "trees": trees(),
    "trees with the logit link": trees(link="logit"),
    "trees grown again": trees(refit=True),
    "multiaccuracy": baseline(fit_multiaccuracy),
    "lsboost": baseline(fit_lsboost, m=20),
    "mcboost": baseline(fit_mcboost, m=20),
    "squarelev": baseline(fit_squarelev, max_rounds=40),
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("method", METHODS)
def test_scaling_all_weights_changes_no_score(method, weights):
    """Not a bit for powers of two, which scale without rounding."""
    learn = METHODS[method]
    before = applied(learn(cells_of(WEIGHTS[weights])), SCORE, MEMBER)
    assert np.abs(before - SCORE).max() > 0.05
    for factor in (2.0**40, 2.0**-9):
        assert np.array_equal(applied(learn(cells_of(WEIGHTS[weights] * factor)), SCORE, MEMBER), before)
    for factor in (100.0, 1 / 3, 1e-6):
        after = applied(learn(cells_of(WEIGHTS[weights] * factor)), SCORE, MEMBER)
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-9)


def test_a_leaf_is_as_large_as_its_rows_where_they_weigh_the_same():
    """And has the same least size whatever that weight is; unequal weights count as fewer rows."""
    for weights in ("constant", "unequal"):
        cells = cells_of(WEIGHTS[weights] * 73).of_role(Role.fit, Role.early_stopping)
        fitting = cells.of_role(Role.fit)
        table = training_table(cells, cells.mean_score, cells.bin, FAST)
        w = WEIGHTS[weights][Role.fit == ROLE]
        assert table.weight[~table.stop].sum() == pytest.approx(w.sum() ** 2 / (w**2).sum())
        assert table.min_weight_in_leaf == FAST.min_rows_in_leaf
        assert table.unit == rows_of_weight(fitting)
    assert table.weight[~table.stop].sum() < fitting.n.sum() / 2


@pytest.mark.parametrize("labels", ["binary", "shares"])
def test_weights_that_span_any_range_leave_all_figures_numbers(labels):
    """Sums in fixed point lose what weighs least: squares of weights first, which once divided by zero."""
    weight = np.where(np.arange(len(SCORE)) % 2, 1.0, 1e-11)
    exact = cells_of(weight, LABEL if labels == "binary" else 0.1 + 0.8 * LABEL)
    rounded = replace(exact, weight_sq=np.where(exact.weight_sq < 1e-18, 0.0, exact.weight_sq))
    assert (rounded.weight_sq[rounded.weight > 0] == 0).any()
    rows = Atoms.of(rounded).rows
    assert ((rows >= 1) & (rows <= Atoms.of(rounded).cells.n)).all()
    floor = noise_floor(rounded, [10], draws=20)[10]
    expected = noise_floor(exact, [10], draws=20)[10]
    assert floor.expected == pytest.approx(expected.expected, rel=0.05)
    interval = bootstrap_intervals(rounded, [10], draws=20)
    for found in (interval.mc_error[10], interval.smece):
        assert 0 <= found.low <= found.high < 1


def test_effective_rows_are_between_one_and_all():
    weight, square = np.array([3.0, 1e30, 4.0, 2.0]), np.array([3.0, 1e60, 0.0, 4.0])
    assert effective_rows(weight, square, np.array([3.0, 1000.0, 5.0, 1.0])).tolist() == [3, 1, 5, 1]

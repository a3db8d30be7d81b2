"""Projection of classes' scores: against the definition of the nearest point, row by row."""

import numpy as np
import pytest

from mcspark.core.classes import projected


def divergence(q, c):
    """D(q, c) = Σ q log(q / c) − Σ q + Σ c, with 0 log 0 = 0."""
    inside = q > 0
    return float((q[inside] * np.log(q[inside] / c[inside])).sum() - q.sum() + c.sum())


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_it_is_the_nearest_point_that_sums_to_one(classes):
    rng = np.random.default_rng(classes)
    calibrated = rng.uniform(1e-6, 1, (classes, 40))
    found = projected(calibrated, calibrated)
    assert found.sum(axis=0) == pytest.approx(1, abs=1e-12)
    assert ((found >= 0) & (found <= 1)).all()
    for row in range(40):
        own = divergence(found[:, row], calibrated[:, row])
        for other in rng.dirichlet(np.ones(classes), 200):
            assert own <= divergence(other, calibrated[:, row]) + 1e-12


def test_no_row_loses_by_it_whatever_its_class():
    """−log q_y ≤ −log c_y + Σ c − 1."""
    rng = np.random.default_rng(1)
    calibrated = rng.uniform(1e-6, 1, (5, 300))
    found = projected(calibrated, calibrated)
    assert (-np.log(found) <= -np.log(calibrated) + calibrated.sum(axis=0) - 1 + 1e-12).all()


def test_nothing_to_divide_by():
    calibrated = np.array([[0.0, 0.0, 0.0, 5e-324], [0.0, 0.0, 1.0, 0.0]])
    given = np.array([[0.3, 0.0, 0.5, 0.5], [0.9, 0.0, 0.5, 0.5]])
    expected = [[0.25, 0.5, 0.0, 1.0], [0.75, 0.5, 1.0, 0.0]]
    assert projected(calibrated, given) == pytest.approx(np.array(expected))
    assert projected(np.zeros((2, 0)), np.zeros((2, 0))).shape == (2, 0)

"""Parameters out of range are refused when they are set, by name."""

from __future__ import annotations

import pytest

from mcspark import Multicalibrator
from mcspark.ml.baselines import LSBoost, MCBoost, Multiaccuracy, SquareLev

WRONG = [
    (Multicalibrator, "link", "probit", "identity or logit"),
    (Multicalibrator, "learningRate", 0.0, "above 0 and at most 1"),
    (Multicalibrator, "learningRate", float("nan"), "above 0 and at most 1"),
    (Multicalibrator, "learningRate", 1.5, "above 0 and at most 1"),
    (Multicalibrator, "featureFraction", -1.0, "above 0 and at most 1"),
    (Multicalibrator, "rounds", "many", "a whole number from 1 to 100, or auto"),
    (Multicalibrator, "rounds", "0", "a whole number from 1 to 100, or auto"),
    (Multicalibrator, "rounds", 1.5, "a whole number from 1 to 100, or auto"),
    (Multicalibrator, "maxTrees", 0, "a whole number from 1 to 100000"),
    (Multicalibrator, "levels", [], "at least one number of levels"),
    (Multicalibrator, "levels", [10, 0], "whole numbers from 1 to 1000"),
    (Multicalibrator, "scoreBins", -1, "a whole number from 0 to 100000"),
    (Multicalibrator, "minRowsInLeaf", 0, "a whole number from 1"),
    (Multicalibrator, "timeoutSeconds", 0.0, "above 0"),
    (Multicalibrator, "seed", -1, "a whole number from 0"),
    (Multiaccuracy, "penalties", [], "one or more numbers from 0"),
    (Multiaccuracy, "penalties", [0.1, -1.0], "one or more numbers from 0"),
    (MCBoost, "grid", 0, "a whole number from 1 to 1000"),
    (LSBoost, "depth", 3, "a whole number from 1 to 2"),
    (LSBoost, "subsample", 0.0, "above 0 and at most 1"),
    (SquareLev, "patience", 0, "a whole number from 1"),
]


@pytest.mark.parametrize(("kind", "name", "value", "wanted"), WRONG)
def test_refused(kind, name, value, wanted):
    with pytest.raises(ValueError, match=rf"^{name} .*{wanted}"):
        kind(**{name: value})


def test_copies_are_checked_too():
    estimator = Multicalibrator(rounds=3)
    assert estimator.getOrDefault("rounds") == "3"
    with pytest.raises(ValueError, match="link must be identity or logit"):
        estimator.copy({estimator.link: "probit"})

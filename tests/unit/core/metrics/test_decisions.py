"""Decisions by a threshold, against the rows themselves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.decisions import decisions

THRESHOLDS = (Fraction(1, 2), Fraction(7, 20), Fraction(1, 3))


def test_they_are_those_of_the_rows_with_weights_and_fractional_labels_and_scores_at_the_threshold():
    rng = np.random.default_rng(1)
    score = np.append(rng.random(3000), [0.5, np.nextafter(0.5, 0), 0.35, 1 / 3, 0.0, 1.0] * 20)
    label = np.where(rng.random(len(score)) < 0.2, rng.random(len(score)), rng.random(len(score)) < score)
    weight, member = rng.exponential(size=len(score)), rng.random((len(score), 2)) < [0.4, 0.0]
    member[0, 1] = True
    cells = Cells.from_rows(score, label, member, bins=ScoreBins(300, (2,) * 300), weight=weight)
    found = {(d.threshold, d.group): d for d in decisions(cells, THRESHOLDS)}
    assert len(found) == 9
    for (threshold, group), told in found.items():
        part = np.ones(len(score), dtype=bool) if group is None else member[:, int(group[1:])]
        above = part & (score >= threshold.numerator / threshold.denominator)
        for value, of in (
            (told.rate, weight),
            (told.true_positive, weight * label),
            (told.false_positive, weight * (1 - label)),
        ):
            assert value == pytest.approx(of[above].sum() / of[part].sum(), abs=1e-12)


def test_where_there_is_nothing_to_divide_by_there_is_no_rate():
    cells = Cells.from_rows(
        np.array([0.7]), np.array([1.0]), np.ones((1, 1), bool), bins=ScoreBins.uniform(2)
    )
    for told in decisions(cells, THRESHOLDS[:1]):
        assert (told.rate, told.true_positive, told.false_positive) == (1.0, 1.0, None)

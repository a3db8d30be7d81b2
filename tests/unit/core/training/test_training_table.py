"""Places of the score that trees are trained on, by the tables that reach the trainer."""

from __future__ import annotations

import numpy as np
import pytest
from miscalibrated import FAST, cells_of, population
from official_trainer import official

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.training.rounds import fit_stages
from mcspark.core.training.training_table import FEWEST_PLACES, MOST_PLACES, told_apart


def watched():
    """A trainer, and the list to which it adds every table that it trains on."""
    seen = []

    def train(table, settings):
        seen.append(table)
        return official(table, settings)

    return seen, train


def test_places_of_a_later_round_part_every_distinct_value():
    place, edges = told_apart(np.array([0.2, 0.5, 0.2, 0.9]))
    assert edges == pytest.approx([0, 0.35, 0.7, 1])
    assert place.tolist() == [0, 1, 0, 2]
    place, edges = told_apart(np.array([0.3, 0.3 + 1e-10, 0.3 + 1e-7]))
    assert place.tolist() == [0, 0, 1], "what rounding parts stays together"
    place, edges = told_apart(np.full(5, 0.4))
    assert edges.tolist() == [0.0, 1.0]
    assert place.tolist() == [0] * 5


def test_trees_tell_few_places_apart_equally_heavy():
    fine = cells_of(depth=3).of_role(Role.fit, Role.early_stopping)
    seen, train = watched()
    fit_stages(fine, FAST, train, rounds=2)
    assert len(np.unique(fine.bin)) > 2 * MOST_PLACES
    for table in seen:
        share = np.bincount(table.place, weights=table.weight) / table.weight.sum()
        assert 0.8 * MOST_PLACES < len(share) <= MOST_PLACES
        # The scores of a later round that are clipped to 0 or 1 are a heavy place of their own.
        assert np.sort(share)[-3] < 2.5 / MOST_PLACES


def test_many_cells_are_trained_on_in_fewer_places(monkeypatch):
    """Neighbouring bins become one place: as heavy as each other, and their edges still bin edges."""
    score, label, member, weight, role = population(12_000)
    cells = Cells.from_rows(
        score, label, member, bins=ScoreBins(60, (3,) * 60), weight=weight, role=role
    ).of_role(Role.fit, Role.early_stopping)
    fine = fit_stages(cells, FAST, official)
    monkeypatch.setattr("mcspark.core.training.training_table.MOST_TRAINING_CELLS", len(cells) // 2)
    seen, train = watched()
    coarse = fit_stages(cells, FAST, train)
    table = seen[0]
    assert len(table.place) <= len(cells) // 2
    places = np.unique(table.place)
    assert np.array_equal(places, np.arange(len(places)))
    share = np.bincount(table.place, weights=table.weight) / table.weight.sum()
    assert share.max() < 2 / len(places)
    # Nothing of the rows is lost: their weight, and their residual.
    assert table.weight.sum() / table.unit == pytest.approx(cells.weight.sum(), rel=1e-12)
    residual = float((table.weight * table.target).sum()) / table.unit
    assert residual == pytest.approx(float((cells.label - cells.score).sum()), rel=1e-9)
    assert (np.diff(table.place_of_bin) >= 0).all()
    # A score on an edge is above it: the threshold is the double before.
    assert set(np.nextafter(coarse.stages.stages[0].form.thresholds, 1)) <= set(cells.bins.edges())
    test = role == Role.test
    losses = [
        np.average((fit.stages.apply(score, member) - label)[test] ** 2, weights=weight[test])
        for fit in (fine, coarse)
    ]
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


def test_places_stop_merging_where_no_score_would_be_told_from_another(monkeypatch):
    cells = cells_of(depth=2).of_role(Role.fit, Role.early_stopping)
    monkeypatch.setattr("mcspark.core.training.training_table.MOST_TRAINING_CELLS", 1)
    fit = fit_stages(cells, FAST, official)
    assert 2 < len(fit.stages.stages[0].form.thresholds) < FEWEST_PLACES

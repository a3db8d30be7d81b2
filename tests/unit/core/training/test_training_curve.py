"""The training curve against the loss of official LightGBM's own predictions on rows."""

from __future__ import annotations

from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pytest
from official_trainer import features, official

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.model.stages import Stages, logit
from mcspark.core.training.rounds import fit_stages
from mcspark.core.training.training_curve import training_curve
from mcspark.core.training.training_table import TreeSettings

SETTINGS = TreeSettings(learning_rate=0.3, max_trees=40, early_stopping_rounds=8)


def rows(n=3000, seed=5):
    """One score a bin, so that a cell stands exactly where its rows do."""
    rng = np.random.default_rng(seed)
    member = rng.random((n, 3)) < [0.5, 0.3, 0.2]
    score = (rng.integers(0, 60, n) + 0.5) / 60
    truth = np.clip(score + 0.25 * member[:, 0] - 0.3 * member[:, 1] * (score > 0.5), 0, 1)
    label = (rng.random(n) < truth).astype(float)
    return score, label, member, rng.integers(1, 4, n).astype(float), rng.choice(3, n, p=[0.5, 0.3, 0.2])


@pytest.mark.parametrize("link", ["identity", "logit"])
def test_every_point_is_the_loss_of_that_many_trees(link):
    score, label, member, weight, role = rows()
    cells = Cells.from_rows(score, label, member, bins=ScoreBins.uniform(60), weight=weight, role=role)
    fit = fit_stages(cells, replace(SETTINGS, link=link), official, rounds=2)
    curve = training_curve(cells, fit.stages, fit.texts, points=6)
    assert {p.stage for p in curve} == set(range(len(fit.stages.stages)))
    for number, stage in enumerate(fit.stages.stages):
        before = Stages(fit.stages.stages[:number], cells.groups).apply(score, member)
        booster = lgb.Booster(model_str=fit.texts[number])
        of_stage = [p for p in curve if p.stage == number]
        assert (of_stage[0].trees, of_stage[-1].trees) == (0, stage.trees)
        for point in of_stage:
            moved = np.zeros(len(score))
            if point.trees:
                x = features(before, member)
                moved = booster.predict(x, num_iteration=point.trees, raw_score=True)
            if link == "identity":
                loss = (before + moved - label) ** 2
            else:
                odds = logit(before) + moved
                loss = np.log1p(np.exp(odds)) - label * odds
            for found, part in ((point.fit, Role.fit), (point.early_stopping, Role.early_stopping)):
                rows_of = role == part
                assert found == pytest.approx(np.average(loss[rows_of], weights=weight[rows_of]), rel=1e-9)


def test_no_stage_has_no_curve():
    score, label, member, _, role = rows(200)
    cells = Cells.from_rows(score, label, member, bins=ScoreBins.uniform(60), role=role)
    assert training_curve(cells, Stages((), cells.groups), ()) == ()

"""Ensembles that learn from columns: what they find and leave alone, and that groups are such columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from column_cells import column_cells

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.features import Features
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.model.lightgbm_text import parse_trees
from mcspark.core.training.lightgbm_parameters import gain_by_chance, lightgbm_parameters
from mcspark.core.training.recipe import fit_auto
from mcspark.core.training.rounds import fit_stages, judge, loss_at
from mcspark.core.training.training_curve import training_curve
from mcspark.core.training.training_table import TreeSettings, training_table
from mcspark.ml.training.driver_training import DriverTrainer

BINS = ScoreBins(20, (2,) * 20)
SIZES, ORDERED = (300, 12), (False, True)


def rows(n: int, seed: int, effect: float, missing: float = 0.05):
    """Rows whose labels are wrong by category of a column of many, and across bins of another one."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(1, s + 1, n) for s in SIZES])
    codes[rng.random(n) < missing, 0] = 0
    codes[rng.random(n) < missing, 1] = 0
    score = rng.beta(2, 2, n)
    of_category = effect * np.where(np.arange(SIZES[0] + 1) % 3 == 0, 1, -0.5)
    truth = np.clip(score + of_category[codes[:, 0]] + effect * (codes[:, 1] > 6), 0, 1)
    role = rng.choice([Role.fit, Role.early_stopping, Role.test], n, p=[0.5, 0.2, 0.3])
    return score, (rng.random(n) < truth).astype(float), codes, role


def cells_of(score, label, codes, role, **more) -> Cells:
    return column_cells(score, label, codes, SIZES, ORDERED, bins=BINS, role=role, **more)


def losses(cells: Cells, stages) -> tuple[float, float]:
    test = cells.of_role(Role.test)
    state = stages.apply_signatures(test.mean_score, test.signature, test.learned)
    return loss_at(test, test.mean_score), loss_at(test, state)


@pytest.mark.parametrize("link", ["identity", "logit"])
def test_rare_categories_are_learned_from(link):
    score, label, codes, role = rows(60_000, 1, 0.15)
    weight = np.random.default_rng(2).uniform(0.1, 3, len(score))
    cells = cells_of(score, label, codes, role, weight=weight)
    settings = TreeSettings(learning_rate=0.3, link=link, refit=True)
    found = fit_auto(cells, settings, DriverTrainer(), given=("link", "learning_rate"))
    before, after = losses(cells, found.fit.stages)
    none = replace(cells, features=None, membership=np.zeros((len(cells.membership), 0), bool), groups=())
    without = losses(none, fit_auto(none, settings, DriverTrainer(), given=("link",)).fit.stages)[1]
    # Half of what is wrong at the least: 0.15² × (2/3 × 1/4 + 1/3) by category, and as much by bin.
    assert without - after > 0.012
    assert before - after > 0.012
    curve = training_curve(cells, found.fit.stages, found.fit.texts)
    assert curve[-1].fit < curve[0].fit


def test_columns_of_noise_do_no_harm():
    score, label, codes, role = rows(20_000, 3, 0.0)
    cells = cells_of(score, label, codes, role)
    stages = fit_auto(cells, TreeSettings(), DriverTrainer()).fit.stages
    test = cells.of_role(Role.test)
    state = stages.apply_signatures(test.mean_score, test.signature, test.learned)
    found = judge(test, test.mean_score, state, stages.trees)
    assert found.gain > -3 * found.noise


def test_groups_are_columns_of_one_category():
    score, label, codes, role = rows(20_000, 4, 0.2)
    member = np.column_stack([codes[:, 0] % 3 == 0, codes[:, 1] > 6, codes[:, 1] > 9])
    groups = Cells.from_rows(score, label, member, bins=BINS, role=role)
    columns = column_cells(
        score, label, member.astype(np.int64), (1, 1, 1), (False,) * 3, bins=BINS, role=role
    )
    settings = TreeSettings(learning_rate=0.3, max_trees=60)
    for link in ("identity", "logit"):
        same = replace(settings, link=link)
        one, other = (fit_stages(cells, same, DriverTrainer(), 2) for cells in (groups, columns))
        every, lists = np.arange(len(score)), Features((), (1,) * 3, (False,) * 3, member.astype(int)).members
        np.testing.assert_allclose(
            one.stages.apply(score, member), other.stages.apply_signatures(score, every, lists),
            rtol=0, atol=1e-9,
        )  # fmt: skip


def test_monotone_holds_for_every_category():
    score, label, codes, role = rows(20_000, 5, 0.2)
    cells = cells_of(score, 1 - label, codes, role)
    settings = TreeSettings(learning_rate=0.3, max_trees=60, monotone=True)
    stages = fit_stages(cells, settings, DriverTrainer(), 2).stages
    assert stages.stages
    lists = Features((), SIZES, ORDERED, codes[:300]).members
    grid = np.linspace(0, 1, 101)
    for one in lists:
        value = stages.apply_signatures(grid, np.zeros(101, dtype=int), one[None])
        assert (np.diff(value) > -1e-12).all()


def test_trees_without_early_stopping_cells_and_missing_values_on_one_side_only():
    score, label, codes, role = rows(20_000, 6, 0.3, missing=0.0)
    late = np.where((role != Role.fit)[:, None] & (codes % 5 == 0), 0, codes)
    cells = cells_of(score, label, late, role)
    fit = fit_stages(cells, TreeSettings(learning_rate=0.5, max_trees=40, refit=True), DriverTrainer())
    assert sum(len(tree.left) for tree in parse_trees(fit.texts[0])) > 0
    assert losses(cells, fit.stages)[1] < losses(cells, fit.stages)[0]


def test_columns_of_many_categories_count_for_less():
    rng = np.random.default_rng(1)
    drawn = np.sort(rng.normal(size=(2000, 70)), axis=1)
    sums = np.cumsum(drawn[:, :4], axis=1) ** 2 / np.arange(1, 5) / (1 - np.arange(1, 5) / 70)
    assert gain_by_chance(70) == pytest.approx(sums.max(axis=1).mean(), rel=0.1)
    score, label, codes, role = rows(2000, 1, 0.1)
    cells = cells_of(score, label, codes, role).of_role(Role.fit)
    table = training_table(cells, cells.mean_score, cells.bin, TreeSettings())
    found = lightgbm_parameters(table, TreeSettings())
    assert found["feature_contri"][0] == found["feature_contri"][2] == 1.0
    assert found["feature_contri"][1] == pytest.approx(7 / gain_by_chance(301))
    assert found["max_bin"] >= 302

"""The choice of the trees' settings by the early-stopping loss, with official LightGBM as the trainer."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
from lightgbm_models import model_text
from miscalibrated import cells_of, counterexample, population
from official_trainer import official

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.calibration_error import calibration_error
from mcspark.core.training.recipe import FIXED_COST, SEARCHED, TREE_COST, fit_auto, fit_paper
from mcspark.core.training.rounds import check_saturation, fit_stages, loss_at
from mcspark.core.training.training_table import TreeSettings

BINS = ScoreBins(60, (1,) * 60)


@pytest.fixture(scope="module")
def cells():
    return cells_of()


@pytest.fixture(scope="module")
def auto(cells):
    return fit_auto(cells, TreeSettings(), official)


def drawn(rows, seed, *, labels="drawn", shift=0.0):
    """Cells, with the truth of each row's label: the score, moved in the first group."""
    rng = np.random.default_rng(seed)
    member, score = rng.random((rows, 3)) < [0.5, 0.3, 0.1], rng.beta(2, 3, rows)
    truth = np.clip(score + shift * member[:, 0], 0, 1)
    label = (rng.random(rows) < truth).astype(float) if labels == "drawn" else truth
    role = rng.choice(3, rows, p=[0.45, 0.25, 0.3])
    return score, truth, member, Cells.from_rows(score, label, member, bins=BINS, role=role)


def same(one, other):
    """Whether two fits tried the same rounds and grew the same trees."""
    return one.rounds == other.rounds and one.texts == other.texts


def test_auto_is_no_worse_than_the_paper_on_rows_that_neither_saw(cells, auto):
    paper = fit_stages(cells, TreeSettings(), official)
    test = cells.of_role(Role.test)

    def loss(stages):
        return loss_at(test, stages.apply_signatures(test.mean_score, test.signature, test.membership))

    assert loss(auto.fit.stages) < loss(paper.stages) + 1e-4


def test_one_candidate_is_chosen_and_the_recipe_says_how_it_grew(auto):
    (chosen,) = (c for c in auto.recipe.candidates if c.chosen)
    for name in ("link", "learning_rate", "min_rows_in_leaf"):
        assert getattr(auto.recipe, name) == getattr(chosen, name) == getattr(auto.settings, name)
    assert auto.recipe.rounds == len(auto.fit.stages.stages) >= 1
    assert auto.recipe.refit == auto.fit.refitted
    assert chosen.trees == tuple(found.trees for found in auto.fit.rounds)
    assert all(c.why and c.words for c in auto.recipe.candidates)


@pytest.mark.parametrize(
    ("rows", "labels", "link", "rate"),
    [(5000, "drawn", "logit", 0.3), (5000, "exact", "identity", 0.3), (90_000, "drawn", "logit", 1.0)],
)
def test_the_first_candidate_suits_the_labels_and_the_number_of_rows(rows, labels, link, rate):
    *_, cells = drawn(rows, 1, labels=labels, shift=0.1)
    first, *_ = fit_auto(cells, TreeSettings(max_trees=5), official).recipe.candidates
    assert (first.link, first.learning_rate) == (link, rate)


def test_rows_of_unequal_weight_count_as_fewer():
    score, truth, member, _ = drawn(70_000, 1, shift=0.1)
    label = (np.random.default_rng(2).random(70_000) < truth).astype(float)
    role = np.random.default_rng(3).choice(2, 70_000)
    rates = []
    for weight in (np.full(70_000, 73.0), np.random.default_rng(4).exponential(73.0, 70_000)):  # half as many
        cells = Cells.from_rows(score, label, member, bins=BINS, role=role, weight=weight)
        found = fit_auto(cells, TreeSettings(max_trees=5), official)
        rates.append(found.recipe.candidates[0].learning_rate)
    assert rates == [1.0, 0.3]


def test_a_later_candidate_is_chosen_only_beyond_the_noise_of_the_difference(cells, monkeypatch):
    monkeypatch.setattr("mcspark.core.training.recipe.MOST_FITS", 10.0)
    _, *others = fit_auto(cells, TreeSettings(), official).recipe.candidates
    assert len(others) == 3
    for other in others:
        assert ("noise" in other.why) != (other.why.startswith("lower than the best before it"))


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        ({"link"}, {"link": "identity"}),
        ({"learning_rate"}, {"learning_rate": 0.25}),
        ({"min_rows_in_leaf"}, {"min_rows_in_leaf": 35}),
        ({"refit"}, {"refit": False}),
    ],
)
def test_a_setting_that_is_given_is_kept_in_every_candidate(cells, given, settings):
    found = fit_auto(cells, replace(TreeSettings(), **settings), official, given=given)
    (name, value), *_ = settings.items()
    assert getattr(found.settings, name) == value
    if name != "refit":
        assert {getattr(c, name) for c in found.recipe.candidates} == {value}
    else:
        assert not found.fit.refitted


def test_a_number_of_rounds_that_is_given_is_no_more_than_that(cells):
    found = fit_auto(cells, TreeSettings(), official, 1, given={"rounds"})
    assert len(found.fit.rounds) == 1


def test_where_all_is_given_there_is_one_candidate_and_the_fit_is_that_of_the_paper(cells):
    settings = TreeSettings(learning_rate=0.3)
    every = set(SEARCHED)
    found = fit_auto(cells, settings, official, 1, given=every)
    assert same(found.fit, fit_stages(cells, settings, official))
    assert len(found.recipe.candidates) == 1


def test_the_recipe_of_the_paper_is_the_fit_as_it_was(cells):
    found = fit_paper(cells, TreeSettings(), official)
    assert same(found.fit, fit_stages(cells, TreeSettings(), official))
    assert (found.recipe.name, found.recipe.candidates) == ("paper", ())


@pytest.mark.parametrize("gamma", [0.5, 0.2])
def test_auto_solves_the_papers_counterexample(gamma):
    score, label, member, cells = counterexample(gamma=gamma)
    found = fit_auto(cells, TreeSettings(), official)
    assert len(found.fit.stages.stages) >= 2
    after = found.fit.stages.apply(score, member)
    assert calibration_error(after, label, member).max() < gamma / 40


@pytest.mark.parametrize("rows", [100, 2000, 20_000])
def test_a_calibrated_score_is_hardly_moved(rows):
    harm = []
    for seed in range(8):
        score, truth, member, cells = drawn(rows, seed)
        after = fit_auto(cells, TreeSettings(), official).fit.stages.apply(score, member)
        harm.append(np.mean((after - truth) ** 2))
    assert np.median(harm) == 0.0
    assert np.mean(harm) < 1.0 / rows


def test_the_loss_of_a_few_rows_does_not_creep_down_for_thousands_of_trees():
    *_, cells = drawn(100, 1)  # its second round did
    found = fit_auto(cells, TreeSettings(), official)
    assert max(r.trees for r in found.fit.rounds) < 50


def test_labels_between_0_and_1_are_learned():
    score, truth, member, cells = drawn(5000, 1, labels="exact", shift=0.2)
    after = fit_auto(cells, TreeSettings(), official).fit.stages.apply(score, member)
    assert np.mean((after - truth) ** 2) < 0.02 * np.mean((score - truth) ** 2)


def test_a_unit_of_weight_changes_no_choice(cells):
    score, label, member, weight, role = population()
    one, many = (
        fit_auto(
            Cells.from_rows(score, label, member, bins=BINS, weight=weight * unit, role=role),
            TreeSettings(), official,
        ).recipe
        for unit in (1.0, 64.0)
    )  # fmt: skip
    assert [c.trees for c in one.candidates] == [c.trees for c in many.candidates]
    assert [c.chosen for c in one.candidates] == [c.chosen for c in many.candidates]


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_one_class_alone_is_learned_without_a_fault(label):
    score, _, member, _ = drawn(2000, 3)
    role = np.random.default_rng(1).choice(3, 2000)
    cells = Cells.from_rows(score, np.full(2000, label), member, bins=BINS, role=role)
    after = fit_auto(cells, TreeSettings(), official).fit.stages.apply(score, member)
    assert np.abs(after - label).max() < np.abs(score - label).max() / 2


@pytest.mark.parametrize("roles", [(Role.fit,), (Role.early_stopping,)])
def test_without_both_parts_nothing_is_learned(cells, roles):
    found = fit_auto(cells.of_role(*roles), TreeSettings(), official)
    assert not found.fit.stages.stages
    assert found.recipe.candidates == ()


def test_a_gain_within_its_noise_is_not_shipped():
    score = population()[0]
    cells = cells_of((score > 0.3) & (score < 0.6))
    stop = cells.of_role(Role.early_stopping)
    step = 0.999 * 2 * (stop.label - stop.score).sum() / stop.weight.sum()
    settings = TreeSettings()
    found = fit_auto(
        cells, settings, lambda table, settings: model_text([float(step)], 5), given={"link"}
    )  # fmt: skip
    assert not found.fit.stages.stages
    assert not any(r.kept for r in found.fit.rounds)


def test_candidates_may_be_grown_by_another_trainer_than_the_trees_that_are_kept(cells):
    kept = []

    def train(table, settings):
        kept.append(settings)
        return official(table, settings)

    plain = fit_auto(cells, TreeSettings(), official)
    for refit in (True, False):
        kept.clear()
        settings = TreeSettings(refit=refit)
        found = fit_auto(cells, settings, train, search=official, given={"refit"})
        assert len(kept) == found.recipe.rounds
        assert found.fit.refitted == refit
        if refit:
            assert same(found.fit, plain.fit)


def test_a_dear_fit_leaves_no_room_for_other_candidates(cells, monkeypatch):
    monkeypatch.setattr("mcspark.core.training.recipe.FREE_WORK", 1)
    assert len(fit_auto(cells, TreeSettings(), official).recipe.candidates) == 1


def cost_of(learn, cells):
    """What a recipe costs on these cells, with the further round that tells the saturation."""
    costs = []

    def train(table, settings):
        text = official(table, settings)
        waited = settings.early_stopping_rounds if table.stop.any() else 0
        costs.append(TREE_COST[settings.link] * (text.count("Tree=") + waited) + FIXED_COST)
        return text

    found = learn(cells, TreeSettings(), train)
    check_saturation(cells, found.fit.stages, found.settings, train)
    return sum(costs)


@pytest.mark.parametrize(
    ("rows", "shift"), [(100, 0.0), (100, 0.3), (1000, 0.0), (1000, 0.2), (6000, 0.1), (30_000, 0.2)]
)
def test_auto_costs_no_more_than_two_fits_of_the_paper_on_a_small_table_too(rows, shift):
    tables = [drawn(rows, seed, shift=shift)[-1] for seed in range(5)]
    paper, auto = (sum(cost_of(learn, cells) for cells in tables) for learn in (fit_paper, fit_auto))
    assert auto <= 2 * paper


@pytest.mark.parametrize(("most", "capped"), [(5, True), (5000, False)])
def test_a_round_that_the_most_trees_ended_says_so(cells, most, capped):
    found = fit_stages(cells, TreeSettings(learning_rate=1.0, max_trees=most), official)
    assert found.rounds[0].capped == capped
    assert asdict(found.rounds[0])["capped"] == capped

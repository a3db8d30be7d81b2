"""Rounds of boosting on cells, with official LightGBM as the trainer, against sums over rows."""

from __future__ import annotations

from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pytest
from lightgbm_models import model_text
from miscalibrated import FAST, cells_of, counterexample, population
from official_trainer import features, official, train_official

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.calibration_error import calibration_error
from mcspark.core.model.stages import SignatureScorer
from mcspark.core.training.rounds import check_saturation, fit_stages, judge, loss_at
from mcspark.core.training.training_table import TreeSettings, rows_of_weight, training_table


@pytest.fixture(scope="module")
def cells():
    return cells_of()


@pytest.fixture(scope="module")
def fit(cells):
    return fit_stages(cells, FAST, official)


XOR = TreeSettings(learning_rate=0.5, max_trees=200, early_stopping_rounds=20)


@pytest.mark.parametrize("gamma", [0.5, 0.2])
def test_the_papers_counterexample_needs_a_second_pass(gamma):
    score, label, member, cells = counterexample(gamma=gamma)
    once = fit_stages(cells, XOR, official, rounds=1).stages
    first = once.apply(score, member)
    assert calibration_error(first, label, member) == pytest.approx([gamma / 4] * 3, abs=1e-6)
    assert np.mean((first - label) ** 2) == pytest.approx(gamma**2 / 4, abs=1e-6)
    saturation = check_saturation(cells, once, XOR, official)
    assert saturation.epsilon_loss == pytest.approx(gamma**2 / 4, abs=1e-6)
    twice = fit_stages(cells, XOR, official, rounds=2).stages
    assert calibration_error(twice.apply(score, member), label, member) == pytest.approx([0] * 3, abs=1e-4)


def test_auto_finds_the_second_pass():
    score, label, member, cells = counterexample()
    found = fit_stages(cells, XOR, official, rounds="auto")
    assert len(found.stages.stages) >= 2
    assert calibration_error(found.stages.apply(score, member), label, member).max() < 1e-4


def test_auto_stops_when_the_gain_is_noise(cells):
    heard = []
    found = fit_stages(cells, FAST, official, rounds="auto", on_round=lambda *what: heard.append(what))
    assert heard == list(enumerate(found.rounds, start=1))
    assert 1 <= len(found.stages.stages) < len(found.rounds) or len(found.rounds) == 10
    assert [r.kept for r in found.rounds] == [True] * len(found.stages.stages) + [False]
    assert not found.rounds[-1].gain > found.rounds[-1].noise


@pytest.mark.parametrize(("rounds", "kept"), [(1, True), ("auto", False)])
def test_a_gain_within_its_noise_is_kept_only_if_the_number_of_rounds_is_given(rounds, kept):
    score = population()[0]
    cells = cells_of((score > 0.3) & (score < 0.6))  # nothing is clipped
    stop = cells.of_role(Role.early_stopping)
    # Twice the mean residual gains nothing; a little less gains a little.
    step = 0.999 * 2 * (stop.label - stop.score).sum() / stop.weight.sum()
    found = fit_stages(cells, FAST, lambda table, settings: model_text([float(step)], 5), rounds)
    assert 0 < found.rounds[0].gain < found.rounds[0].noise
    assert found.rounds[0].kept == kept == bool(found.stages.stages)


def test_the_fit_lowers_the_error_on_held_out_rows(cells, fit):
    score, label, member, weight, role = population()
    test = role == Role.test
    after = fit.stages.apply(score, member)

    def loss(values):
        return np.average((values - label)[test] ** 2, weights=weight[test])

    assert loss(after) < loss(score) - 0.01
    level = np.floor(score * 20).clip(0, 19) / 20 + 0.025
    level_after = np.floor(after * 20).clip(0, 19) / 20 + 0.025
    before_error = calibration_error(level[test], label[test], member[test], weight[test]).max()
    assert (
        calibration_error(level_after[test], label[test], member[test], weight[test]).max() < before_error / 2
    )


def test_a_cell_moves_as_its_rows_do_in_the_first_round(cells, fit):
    """Thresholds are bin edges, so the loss from the cells is the loss of the rows."""
    score, label, member, weight, role = population()
    form = fit.stages.stages[0].form
    shift = form.evaluate(score, member)
    stop = cells.of_role(Role.early_stopping)
    mean = stop.score / stop.weight
    shifted = mean + form.evaluate(mean, stop.membership[stop.signature])
    here = role == Role.early_stopping
    rows = np.average((score + shift - label)[here] ** 2, weights=weight[here])
    assert loss_at(stop, shifted) == pytest.approx(rows, abs=1e-13)
    assert loss_at(stop, mean) == pytest.approx(stop.loss(), abs=1e-14)


@pytest.mark.parametrize("rounds", [1, 2])
def test_scores_of_two_decimals_move_as_their_rows_do(rounds):
    """Rows on the edges of bins, and sums rounded as those of a large population are."""
    score, label, member, weight, role = population()
    score = np.round(score, 2)
    cells = Cells.from_rows(score, label, member, bins=ScoreBins.uniform(300), weight=weight, role=role)
    rounded = replace(cells, score=np.rint(cells.score * 2.0**30) / 2.0**30)
    found = fit_stages(rounded, FAST, official, rounds)
    stop = role == Role.early_stopping
    moved = found.stages.apply(score[stop], member[stop])
    expected = np.average((moved - label[stop]) ** 2, weights=weight[stop])
    assert found.rounds[len(found.stages.stages) - 1].loss_after == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(("weighted", "tolerance"), [(False, 1e-9), (True, 0.02)])
def test_gain_and_its_noise_are_those_of_the_rows(weighted, tolerance):
    """The noise is exact for equal weights; within a cell, weights and residuals are taken as unrelated."""
    score, label, member, weight, role = population()
    weight = weight if weighted else np.ones_like(weight)
    cells = Cells.from_rows(score, label, member, bins=ScoreBins(60, (1,) * 60), weight=weight, role=role)
    stop = cells.of_role(Role.early_stopping)
    here = np.flatnonzero(role == Role.early_stopping)
    # Any two corrections that are the same for all rows of a cell.
    rng = np.random.default_rng(1)
    one, two = rng.normal(0, 0.1, (2, 120, 16))
    place = stop.bins.assign(score[here])
    code = member[here] @ [1, 2, 4, 8]
    a, b = one[place, code], two[place, code]
    f, y, w = score[here], label[here], weight[here]
    gains = (f + a - y) ** 2 - (f + b - y) ** 2
    gain = np.average(gains, weights=w)
    noise = np.sqrt((w**2 * (gains - gain) ** 2).sum()) / w.sum()
    mean = stop.score / stop.weight
    cell_code = stop.membership[stop.signature] @ [1, 2, 4, 8]
    found = judge(stop, mean + one[stop.bin, cell_code], mean + two[stop.bin, cell_code], trees=7)
    assert found.gain == pytest.approx(gain, abs=1e-13)
    assert found.noise == pytest.approx(noise, rel=tolerance)
    assert (found.trees, found.kept) == (7, False)


def test_the_text_is_the_stage_in_score_units(cells, fit):
    """Anyone with LightGBM can use the saved text on raw scores and 0/1 groups."""
    score, _, member, _, _ = population()
    edge = fit.stages.stages[0].form.thresholds
    score = np.concatenate([score, edge, np.nextafter(edge, 2), [0.0, 1.0, -0.0]])
    member = np.resize(member, (len(score), 4))
    raw = lgb.Booster(model_str=fit.texts[0]).predict(features(score, member))
    expected = np.clip(score + raw, 0, 1)
    np.testing.assert_allclose(fit.stages.apply(score, member), expected, rtol=0, atol=1e-12)
    assert fit.stages.stages[0].trees == lgb.Booster(model_str=fit.texts[0]).num_trees()


def test_the_best_iteration_and_no_other_is_kept(cells, fit):
    learning = cells.of_role(Role.fit, Role.early_stopping)
    table = training_table(learning, learning.score / learning.weight, learning.bin, FAST)
    assert fit.stages.trees == train_official(table, FAST)[1]


@pytest.mark.parametrize("link", ["identity", "logit"])
def test_weight_two_is_the_row_twice(link):
    """But for the least leaf, which is counted in effective rows: fewer than rows, where weights differ."""
    score, label, member, weight, role = population(1500)
    bins = ScoreBins.uniform(60)
    again = np.repeat(np.arange(1500), weight.astype(int))
    one = Cells.from_rows(score, label, member, bins=bins, weight=weight, role=role)
    two = Cells.from_rows(score[again], label[again], member[again], bins=bins, role=role[again])
    least = FAST.min_rows_in_leaf / rows_of_weight(one.of_role(Role.fit))
    first = fit_stages(one, replace(FAST, link=link), official)
    second = fit_stages(two, replace(FAST, link=link, min_rows_in_leaf=least), official)
    assert first.stages.trees == second.stages.trees > 0
    # LightGBM holds weights as floats of 32 bits.
    np.testing.assert_allclose(
        first.stages.apply(score, member), second.stages.apply(score, member), rtol=0, atol=1e-7
    )


def test_weights_that_are_shares_still_grow_trees():
    score, label, member, weight, role = population(1500)
    one, other = (
        fit_stages(
            Cells.from_rows(score, label, member, bins=ScoreBins.uniform(60), weight=w, role=role),
            FAST,
            official,
        )
        for w in (weight / weight.sum(), weight / weight.mean())
    )
    assert one.stages.trees > 0
    # Both count one a row on average over all rows; over the fitting rows alone it is a little more or less.
    assert one.stages.trees == pytest.approx(other.stages.trees, abs=5)


def test_rows_without_weight_change_nothing(fit):
    score, label, member, weight, role = population()
    score, label, member = np.r_[score, 0.77], np.r_[label, 0.0], np.vstack([member, [True] * 4])
    cells = Cells.from_rows(
        score, label, member, bins=ScoreBins(60, (1,) * 60), weight=np.r_[weight, 0.0], role=np.r_[role, 0]
    )
    found = fit_stages(cells, FAST, official)
    assert np.array_equal(found.stages.apply(score, member), fit.stages.apply(score, member))


def test_test_rows_are_never_learned_from(cells, fit):
    score, label, member, weight, role = population()
    spoilt = np.where(role == Role.test, 1 - label, label)
    other = Cells.from_rows(score, spoilt, member, bins=cells.bins, weight=weight, role=role)
    found = fit_stages(other, FAST, official)
    assert np.array_equal(found.stages.apply(score, member), fit.stages.apply(score, member))


def test_a_perfect_score_ships_as_it_is():
    rng = np.random.default_rng(0)
    score, member = rng.random(3000), rng.random((3000, 3)) < 0.4
    cells = Cells.from_rows(score, score, member, bins=ScoreBins.uniform(60), role=rng.choice(3, 3000))
    found = fit_stages(cells, FAST, official)
    assert found.stages.stages == ()
    assert found.texts == ()
    assert [r.kept for r in found.rounds] == [False]


@pytest.mark.parametrize("roles", [(0,), (1,), (2,), (0, 2), (1, 2)])
def test_without_both_parts_there_is_nothing_to_learn(cells, roles):
    found = fit_stages(cells.of_role(*map(Role, roles)), FAST, official)
    assert (found.stages.stages, found.rounds) == ((), ())


def test_logit_starts_from_the_score_and_stays_inside(cells):
    score, label, member, weight, role = population()
    found = fit_stages(cells, replace(FAST, link="logit"), official)
    after = found.stages.apply(score, member)
    test = role == Role.test
    assert 0 < after.min() <= after.max() < 1

    def loss(values):
        return np.average((values - label)[test] ** 2, weights=weight[test])

    assert loss(after) < loss(score) - 0.01


def test_saturation_is_the_gain_of_one_more_pass_on_the_test_rows(cells, fit):
    found = check_saturation(cells, fit.stages, FAST, official)
    test = cells.of_role(Role.test)
    state = fit.stages.apply_signatures(test.score / test.weight, test.signature, cells.membership)
    assert found.loss == pytest.approx(loss_at(test, state), abs=1e-15)
    assert abs(found.epsilon_loss) < 0.002
    without = check_saturation(cells.of_role(Role.fit, Role.early_stopping), fit.stages, FAST, official)
    assert without is None


def test_a_second_round_sees_the_calibrated_score(cells, fit):
    twice = fit_stages(cells, replace(FAST, max_trees=10), official, rounds=2)
    assert len(twice.stages.stages) == 2
    assert len(twice.texts) == 2
    score, _, member, _, _ = population()
    first = twice.stages.stages[0].apply(score, member)
    raw = lgb.Booster(model_str=twice.texts[1]).predict(features(first, member))
    np.testing.assert_allclose(
        twice.stages.apply(score, member), np.clip(first + raw, 0, 1), rtol=0, atol=1e-12
    )
    assert twice.rounds[1].loss_before == pytest.approx(twice.rounds[0].loss_after, abs=1e-12)


def test_refit_grows_the_chosen_number_of_trees_on_all_rows_that_are_not_test(cells, fit):
    found = fit_stages(cells, replace(FAST, refit=True), official)
    assert found.refitted
    assert not fit.refitted
    assert found.stages.trees == fit.stages.trees
    score, _, member, _, _ = population()
    assert not np.array_equal(found.stages.apply(score, member), fit.stages.apply(score, member))


def test_a_refit_that_loses_where_it_has_learned_is_not_taken(cells, fit):
    """Newton steps may run away from rows that the number of trees was never tried on."""

    def astray(table, settings):
        return official(table, settings) if table.stop.any() else model_text([0.9], 5)

    found = fit_stages(cells, replace(FAST, refit=True), astray)
    assert (found.refitted, found.texts) == (False, fit.texts)
    score, _, member, _, _ = population()
    np.testing.assert_array_equal(found.stages.apply(score, member), fit.stages.apply(score, member))


def test_a_learning_rate_of_one_does_no_harm_on_the_logit_scale():
    """Labels that steep scores did not expect: without a limit the trees of this fit diverge."""
    rng = np.random.default_rng(5)
    n = 9000
    member = rng.random((n, 4)) < 0.4
    odds = rng.normal(0, 4, n)
    score = 1 / (1 + np.exp(-odds))
    label = (rng.random(n) < 1 / (1 + np.exp(-odds / 2 - 2 * member[:, 0] + 2 * member[:, 1]))).astype(float)
    role = rng.choice(3, n, p=[0.45, 0.25, 0.3])
    cells = Cells.from_rows(score, label, member, bins=ScoreBins(60, (3,) * 60), role=role)
    settings = TreeSettings(link="logit", learning_rate=1.0, refit=True)
    found = fit_stages(cells, settings, official)
    assert found.refitted
    test = role == Role.test
    before, after = (np.mean((s - label)[test] ** 2) for s in (score, found.stages.apply(score, member)))
    assert after < 0.8 * before


def test_signature_scores_are_those_of_rows(fit):
    score, _, member, _, _ = population()
    table, signature = np.unique(member, axis=0, return_inverse=True)
    fast = SignatureScorer(fit.stages, table)(score, signature.reshape(-1))
    np.testing.assert_allclose(fast, fit.stages.apply(score, member), rtol=0, atol=1e-15)

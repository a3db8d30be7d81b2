"""One ensemble by SynapseML against official LightGBM on the same table, and what must never reach it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pytest
from miscalibrated import FAST, counterexample, population
from official_trainer import features, surprised, train_official

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.calibration_error import calibration_error
from mcspark.core.model.additive import AdditiveForm
from mcspark.core.model.lightgbm_text import parse_trees
from mcspark.core.model.stages import Stages
from mcspark.core.training.rounds import check_saturation, fit_stages
from mcspark.core.training.training_table import TrainingTable, TreeSettings
from mcspark.errors import McsparkError, TransientError
from mcspark.ml.training.trees import SynapseTrainer, check_table, cut_at_best, held_out_curve

SETTINGS = TreeSettings(learning_rate=0.3, max_trees=300, early_stopping_rounds=10, min_rows_in_leaf=5)


def training_table(link="identity", seed=1, cells=2500):
    rng = np.random.default_rng(seed)
    member = np.array([[i >> k & 1 for k in range(4)] for i in range(16)], dtype=bool)
    place, signature = rng.integers(0, 80, cells), rng.integers(0, 16, cells)
    inside = member[signature]
    wrong = 0.2 * inside[:, 0] - 0.3 * inside[:, 1] * (place > 40) + 0.001 * place * inside[:, 2]
    weight = rng.integers(1, 30, cells).astype(float)
    noise = rng.normal(0, 0.4, cells) / np.sqrt(weight)
    offset = None
    if link == "logit":
        offset = (place - 40) / 15
        target = np.clip(1 / (1 + np.exp(-offset - 2 * wrong)) + noise, 0, 1)
    else:
        target = wrong + noise
    return TrainingTable(
        place=place, signature=signature, membership=member, target=target, weight=weight,
        stop=rng.random(cells) < 0.3, offset=offset, min_weight_in_leaf=5.0, rows=weight, unit=1.0,
    )  # fmt: skip


@pytest.fixture(scope="module", params=[pytest.param("synapseml", marks=pytest.mark.synapseml)])
def trainer(spark, request):
    return SynapseTrainer(spark, timeout_seconds=300)


@pytest.mark.parametrize(("link", "monotone"), [("identity", False), ("identity", True), ("logit", False)])
def test_the_best_iteration_is_that_of_official_lightgbm(trainer, link, monotone):
    """SynapseML's own transform is one tree short; its text, cut here, is not."""
    table, settings = training_table(link), replace(SETTINGS, link=link, monotone=monotone)
    text = trainer(table, settings)
    booster, best = train_official(table, settings)
    trees = parse_trees(text)
    assert 3 < best < settings.max_trees - settings.early_stopping_rounds
    assert len(trees) == best
    x = features(table.place, table.membership[table.signature])
    expected = booster.predict(x, num_iteration=best, raw_score=True)
    ours = lgb.Booster(model_str=text).predict(x, raw_score=True)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-6)  # its native library is LightGBM 3.3
    form = AdditiveForm.from_trees(trees, 4)
    found = form.evaluate(table.place.astype(float), table.membership[table.signature])
    np.testing.assert_allclose(found, ours, rtol=0, atol=1e-12)


def test_no_tree_moves_the_log_odds_by_more_than_one(trainer):
    settings = replace(SETTINGS, link="logit", learning_rate=0.5, max_trees=2)
    trees = parse_trees(trainer(surprised(), settings))
    assert [max(abs(tree.leaf_value)) for tree in trees] == pytest.approx([1.0] * 2, abs=1e-12)


def test_at_the_cap_the_best_tree_is_found_here(trainer):
    """Patience never runs out, so that LightGBM keeps every tree; some of the last ones did harm."""
    table = training_table(cells=600)
    settings = replace(SETTINGS, max_trees=60, early_stopping_rounds=60)
    text = trainer(table, settings)
    booster, _ = train_official(table, replace(settings, early_stopping_rounds=1000))
    x = features(table.place, table.membership[table.signature])[table.stop]
    curve = [
        np.average((booster.predict(x, num_iteration=i + 1) - table.target[table.stop]) ** 2,
                   weights=table.weight[table.stop])
        for i in range(60)
    ]  # fmt: skip
    best = int(np.argmin(curve)) + 1
    assert 1 < best < 60
    assert len(parse_trees(text)) == best
    np.testing.assert_allclose(held_out_curve(text, table, settings), curve[:best], rtol=1e-5)


@pytest.mark.parametrize("link", ["identity", "logit"])
def test_the_held_out_curve_is_that_of_official_predictions(link):
    table, settings = training_table(link), replace(SETTINGS, link=link, max_trees=25)
    booster, _ = train_official(table, replace(settings, early_stopping_rounds=1000))
    text = booster.model_to_string(num_iteration=25)
    x = features(table.place, table.membership[table.signature])[table.stop]
    target, weight = table.target[table.stop], table.weight[table.stop]
    offset = 0 if table.offset is None else table.offset[table.stop]
    expected = []
    for i in range(25):
        raw = booster.predict(x, num_iteration=i + 1, raw_score=True) + offset
        if link == "identity":
            loss = (raw - target) ** 2
        else:
            p = 1 / (1 + np.exp(-raw))
            loss = -target * np.log(p) - (1 - target) * np.log(1 - p)
        expected.append(np.average(loss, weights=weight))
    np.testing.assert_allclose(held_out_curve(text, table, settings), expected, rtol=1e-10)
    cut = cut_at_best(text, table, settings)
    assert len(parse_trees(cut)) == int(np.argmin(expected)) + 1
    assert cut_at_best(text, table, replace(settings, max_trees=26)) == text


def test_scaling_all_weights_changes_no_score(trainer):
    score, label, member, weight, role = population(1500)

    def scores(factor):
        cells = Cells.from_rows(
            score, label, member, bins=ScoreBins(20, (1,) * 20), weight=weight * factor, role=role
        )
        return fit_stages(cells, replace(FAST, max_trees=8), trainer).stages.apply(score, member)

    before = scores(1.0)
    assert np.abs(before - score).max() > 0.05
    for factor in (1e-3, 1e5):
        np.testing.assert_allclose(scores(factor), before, rtol=0, atol=1e-9)


def test_neither_order_nor_partitions_change_a_tree(spark, trainer):
    table = training_table(cells=400)
    settings = replace(SETTINGS, max_trees=10)
    one = parse_trees(trainer(table, settings))
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "11")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        other = parse_trees(trainer(table, settings))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert len(one) == len(other)
    for first, second in zip(one, other, strict=True):
        assert np.array_equal(first.threshold, second.threshold)
        assert np.array_equal(first.leaf_value, second.leaf_value)


@pytest.mark.parametrize("field", ["target", "weight", "offset"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_never_reaches_the_trainer(field, value):
    table = training_table("logit")
    spoilt = getattr(table, field).copy()
    spoilt[[3, 5]] = value
    with pytest.raises(McsparkError, match=f"2 cells have no finite {field}"):
        check_table(replace(table, **{field: spoilt}))


def test_other_tables_that_cannot_be_trained_on():
    table = training_table()
    check_table(table)
    check_table(replace(table, stop=np.zeros_like(table.stop)))
    with pytest.raises(McsparkError, match="without weight"):
        check_table(replace(table, weight=np.where(table.place == 3, 0.0, table.weight)))
    with pytest.raises(McsparkError, match="not for early stopping"):
        check_table(replace(table, stop=np.ones_like(table.stop)))


@pytest.mark.synapseml
def test_a_fit_has_a_time_limit(spark, monkeypatch):
    """The limit itself is tested with the watchdog: LightGBM cannot be stopped, and would slow the tests."""
    given = []

    @contextmanager
    def limit(session, seconds, what):
        given.append((session, seconds, what))
        raise TransientError("too late")
        yield

    monkeypatch.setattr("mcspark.ml.training.trees.time_limit", limit)
    with pytest.raises(TransientError):
        SynapseTrainer(spark, timeout_seconds=3)(training_table(), SETTINGS)
    assert given == [(spark, 3, "training the trees")]


def test_the_papers_counterexample(trainer):
    """One pass leaves MC error γ/4 and loss γ²/4 = ε_loss; a second pass, which `auto` finds, leaves none."""
    score, label, member, cells = counterexample(rows=120)
    settings = TreeSettings(learning_rate=0.5, max_trees=80, early_stopping_rounds=10)
    found = fit_stages(cells, settings, trainer, rounds="auto")
    assert len(found.stages.stages) >= 2
    once = Stages(found.stages.stages[:1], found.stages.groups)
    first = once.apply(score, member)
    assert calibration_error(first, label, member) == pytest.approx([0.125] * 3, abs=1e-5)
    assert np.mean((first - label) ** 2) == pytest.approx(0.0625, abs=1e-5)
    assert check_saturation(cells, once, settings, trainer).epsilon_loss == pytest.approx(0.0625, abs=1e-5)
    assert calibration_error(found.stages.apply(score, member), label, member).max() < 1e-4

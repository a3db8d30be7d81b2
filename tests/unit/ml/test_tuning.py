"""Sweeps in processes and threads, what they keep, and what they choose."""

import json
from concurrent.futures import Future
from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pytest
import structlog
from official_trainer import features, official, train_official

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.training.sweep import BUCKETS, Sweep, Trial
from mcspark.core.training.training_table import TrainingTable, TreeSettings
from mcspark.ml.training.driver_training import DriverTrainer, engine
from mcspark.ml.training.tuning import Engine, block_of, digest, run_sweep, workers

GRIDS = {
    "none": ((),),
    "mcboost": tuple((("early_stopping", share),) for share in (0.2, 0.4)),
    "trees": tuple((("learning_rate", rate), ("feature_fraction", 1.0)) for rate in (0.01, 0.3)),
}


class Kept(dict):
    """A store in memory."""

    def read(self, name):
        return self.get(name)

    def write(self, name, text):
        self[name] = text


@pytest.fixture(scope="module")
def sweep():
    rng = np.random.default_rng(8)
    n = 3000
    member = rng.random((n, 3)) < [0.5, 0.3, 0.2]
    score = rng.random(n)
    truth = np.clip(score + 0.2 * member[:, 0] - 0.25 * member[:, 1] * (score > 0.5), 0, 1)
    label = (rng.random(n) < truth).astype(float)
    test = rng.random(n) < 0.4
    bins = ScoreBins(20, (3,) * 20)
    learning = Cells.from_rows(
        score[~test], label[~test], member[~test], bins=bins, role=rng.integers(0, BUCKETS, (~test).sum())
    )
    held_out = Cells.from_rows(score[test], label[test], member[test], bins=bins)
    trees = TreeSettings(max_trees=15, early_stopping_rounds=5)
    return Sweep(learning, held_out, (10, 20), 3, 0.3, trees)


@pytest.fixture(scope="module", params=["processes", "threads"])
def run(request, sweep):
    store = Kept()
    with workers(sweep, Engine("official", official, request.param == "processes"), 2) as pool:
        return *run_sweep("task", sweep, GRIDS, 2, pool, store), store


def test_the_setting_of_the_lowest_mean_over_partitions_is_chosen(run, sweep):
    _, chosen, _ = run
    found = {(c.method, c.m): (c.setting, c.value) for c in chosen}
    assert set(found) == {("none", None), ("mcboost", 10), ("mcboost", 20), ("trees", None)}
    for method, m in (("mcboost", 20), ("trees", None)):
        means = [
            np.mean([sweep.validate(Trial(method, s, m, k), official) for k in range(2)])
            for s in GRIDS[method]
        ]
        setting, value = found[method, m]
        assert setting == GRIDS[method][int(np.argmin(means))]
        assert value == pytest.approx(min(means), rel=1e-12)
    # Fifteen trees of rate 0.01 change next to nothing.
    assert dict(found["trees", None][0])["learning_rate"] == 0.3


def test_rows_are_the_reports_of_the_chosen_settings(run, sweep):
    rows, chosen, _ = run
    for choice in chosen:
        for k in range(1 if choice.method == "none" else 2):
            wanted = sweep.report(Trial(choice.method, choice.setting, choice.m, k), official)
            found = [
                (r.metric, r.m, r.value)
                for r in rows
                if r.method == choice.method and r.fold == k and (choice.m is None or r.m == choice.m)
            ]
            assert found == [tuple(line) for line in json.loads(json.dumps(wanted))]
    settings = [(r.method, r.m, r.metric) for r in rows if r.fold is None]
    assert ("trees", None, "chosen_learning_rate") in settings
    assert ("mcboost", 10, "chosen_early_stopping") in settings


def test_an_interrupted_sweep_goes_on_where_it_was(run, sweep):
    rows, chosen, store = run
    half = Kept({name: text for name, text in store.items() if not name.endswith("-1")})
    submitted = []

    class Counting:
        def __init__(self, pool):
            self.pool = pool

        def submit(self, trial, *, report):
            submitted.append((trial.partition, report))
            return self.pool.submit(trial, report=report)

    with workers(sweep, Engine("official", official, False), 1) as pool:
        again = run_sweep("task", sweep, GRIDS, 2, Counting(pool), half)
    assert again[0] == rows
    assert again[1][-1] == chosen[-1]
    assert {partition for partition, _ in submitted} == {1}
    assert set(half) == set(store)


def test_a_setting_without_a_value_is_kept_and_not_chosen(sweep):
    """No error can be told where no validation row is left; it is not the lowest."""

    class Answers:
        def submit(self, trial, *, report):
            value = float("nan") if trial.setting == GRIDS["mcboost"][0] else 0.25 + trial.partition
            future = Future()
            future.set_result([("loss", None, value)] if report else value)
            return future

    store = Kept()
    _, chosen = run_sweep("task", sweep, {"mcboost": GRIDS["mcboost"]}, 2, Answers(), store)
    assert [(c.setting, c.value) for c in chosen] == [(GRIDS["mcboost"][1], 0.75)] * 2
    assert store["validate-mcboost-10-1"] == "[null, 1.25]"


@pytest.mark.parametrize("text", ["[1e999, 0.1]", "[NaN, 0.1]", "[0.1]", "[true, 0.1]", "{", "[[0.1], 0.1]"])
def test_what_is_no_block_of_two_values_runs_again(text):
    assert block_of(text, "validate", 2) is None
    assert block_of("[0.1, 1]", "validate", 2) == [0.1, 1]


def test_a_failing_trial_ends_the_sweep(sweep):
    def fails(table, settings):
        raise RuntimeError("no trees today")

    with (
        workers(sweep, Engine("broken", fails, False), 1) as pool,
        pytest.raises(RuntimeError, match="no trees today"),
    ):
        run_sweep("task", sweep, {"trees": GRIDS["trees"]}, 1, pool, Kept())


def test_a_digest_goes_with_cells_settings_grids_and_engine(sweep):
    name = digest(sweep, GRIDS, "a")
    assert name == digest(replace(sweep), dict(GRIDS), "a")
    label = sweep.learning.label.copy()
    label[0] += 1e-9
    others = [
        digest(sweep, GRIDS, "b"),
        digest(sweep, {"none": ((),)}, "a"),
        digest(replace(sweep, seed=4), GRIDS, "a"),
        digest(replace(sweep, rounds="auto"), GRIDS, "a"),
        digest(replace(sweep, trees=replace(sweep.trees, link="logit")), GRIDS, "a"),
        digest(replace(sweep, learning=replace(sweep.learning, label=label)), GRIDS, "a"),
    ]
    assert len({name, *others}) == 1 + len(others)


@pytest.mark.parametrize("link", ["identity", "logit"])
def test_the_drivers_trees_are_those_of_the_official_library(link):
    rng = np.random.default_rng(2)
    n = 900
    member = rng.random((12, 4)) < 0.4
    place, signature = rng.integers(0, 60, n), rng.integers(0, 12, n)
    target = 0.3 * member[signature, 0] * (place > 20) + rng.normal(0, 0.3, n)
    offset = (place - 30) / 15.0 if link == "logit" else None
    table = TrainingTable(
        place=place, signature=signature, membership=member,
        target=np.clip(target + 0.3, 0, 1) if link == "logit" else target,
        weight=rng.integers(1, 5, n).astype(float), stop=rng.random(n) < 0.3, offset=offset,
        min_weight_in_leaf=5.0, rows=np.ones(n), unit=1.0,
    )  # fmt: skip
    settings = TreeSettings(learning_rate=0.2, link=link, max_trees=80, early_stopping_rounds=10)
    x = features(place, member[signature])
    booster, best = train_official(table, settings)
    wanted = booster.predict(x, num_iteration=best, raw_score=True)
    found = lgb.Booster(model_str=DriverTrainer()(table, settings))
    assert found.num_trees() == best
    np.testing.assert_allclose(
        found.predict(x, raw_score=True), wanted, atol=1e-7
    )  # its weights are single precision
    everything = replace(table, stop=np.zeros(n, dtype=bool))
    assert lgb.Booster(model_str=DriverTrainer()(everything, replace(settings, max_trees=7))).num_trees() == 7


def test_trials_are_counted_and_those_that_are_kept_are_not(sweep):
    store = Kept()
    grids = {name: GRIDS[name] for name in ("none", "trees")}
    with structlog.testing.capture_logs() as told, workers(sweep, Engine("", official, False), 1) as pool:
        run_sweep("task", sweep, grids, 2, pool, store)
        first = [(e["event"], e["progress"]) for e in told if e["log_level"] == "debug"]
        told.clear()
        del store["validate-trees-all-1"]
        run_sweep("task", sweep, grids, 2, pool, store)
    structlog.reset_defaults()
    assert first[:4] == [(f"validate: trial {k} of 4, trees", (k, 4)) for k in range(1, 5)]
    assert [progress for _, progress in first[4:]] == [(1, 3), (2, 3), (3, 3)]
    assert [e["progress"] for e in told if e["log_level"] == "debug"] == [(1, 2), (2, 2)]


def test_the_engine_names_its_version():
    assert engine() == f"lightgbm {lgb.__version__}"

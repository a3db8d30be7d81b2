"""Several processes grow one ensemble: the trees are those of official LightGBM on all rows at once.

LightGBM keeps its network by thread, so that the processes can be threads here.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import lightgbm
import numpy as np
import pytest
from scipy.sparse import csr_matrix

from mcspark.core.model.lightgbm_text import parse_trees
from mcspark.core.training.training_table import TrainingTable, TreeSettings
from mcspark.ml.training import peers
from mcspark.ml.training.peers import Growth, Part, Peers, best_tree, grow
from mcspark.runtime.tasks.ports import held_port

PLACES, GROUPS, ROWS = 16, 7, 4000
SETTINGS = TreeSettings(learning_rate=0.3, max_trees=60, early_stopping_rounds=8)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    place, first, second = rng.integers(0, PLACES, ROWS), rng.integers(0, 5, ROWS), rng.integers(0, 4, ROWS)
    member = np.zeros((ROWS, GROUPS), dtype=bool)  # a family of four and a rest, one of three and a rest
    member[first < 4, first[first < 4]] = True
    member[second < 3, 4 + second[second < 3]] = True
    mean = 0.1 + 0.1 * np.sin(place) + 0.2 * (first == 1) * (second == 0) - 0.1 * (second == 2)
    target = mean + 0.4 * rng.standard_normal(ROWS)
    return Part(
        csr_matrix(np.column_stack([place, member]), dtype=np.float32),
        target, rng.uniform(0.5, 2, ROWS), rng.random(ROWS) < 0.3,
    )  # fmt: skip


@pytest.fixture(scope="module")
def table(rows):
    """Each row as a cell of its own."""
    dense = rows.features.toarray()
    return TrainingTable(
        place=dense[:, 0].astype(int), signature=np.arange(ROWS), membership=dense[:, 1:].astype(bool),
        target=rows.target, weight=rows.weight, stop=rows.stop, offset=None, min_weight_in_leaf=20.0,
        rows=np.ones(ROWS), unit=1.0, place_of_bin=np.arange(PLACES),
    )  # fmt: skip


def together(rows, growth, owner, machines):
    """What each process returns that owns some of the rows."""
    waiting = Barrier(machines, timeout=60)
    said = [""] * machines

    def run(rank):
        def gather(text):
            waiting.wait()
            said[rank] = text
            waiting.wait()
            return list(said)

        own = owner == rank
        part = Part(rows.features[own], rows.target[own], rows.weight[own], rows.stop[own])
        return grow(part, growth, Peers(addresses, rank, gather, 1))

    with ExitStack() as held:
        addresses = [f"127.0.0.1:{held.enter_context(held_port())}" for _ in range(machines)]
    with ThreadPoolExecutor(machines) as threads:
        return [found.result(60) for found in [threads.submit(run, rank) for rank in range(machines)]]


def official(rows, settings, stops=True):
    """The same rows in one process, with bins of LightGBM's own."""
    parameters = {
        "objective": "regression", "learning_rate": settings.learning_rate, "num_leaves": 4, "max_depth": 2,
        "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 20.0, "min_data_in_bin": 1, "verbosity": -1,
        "feature_pre_filter": False, "deterministic": True, "force_col_wise": True, "num_threads": 1,
        "feature_fraction": settings.feature_fraction, "seed": settings.seed,
    }  # fmt: skip
    if settings.monotone:
        parameters["monotone_constraints"] = [1] + [0] * GROUPS
    x = rows.features.toarray()
    fit = ~rows.stop if stops else np.ones(ROWS, dtype=bool)
    learn = lightgbm.Dataset(x[fit], rows.target[fit], weight=rows.weight[fit], params=parameters)
    if not stops:
        return lightgbm.train(parameters, learn, settings.max_trees).predict(x)
    stop = learn.create_valid(x[~fit], rows.target[~fit], weight=rows.weight[~fit])
    patience = lightgbm.early_stopping(settings.early_stopping_rounds, verbose=False)
    booster = lightgbm.train(parameters, learn, settings.max_trees, [stop], callbacks=[patience])
    assert booster.best_iteration < settings.max_trees, "the early-stopping rows are to choose"
    return booster.predict(x, num_iteration=booster.best_iteration)


def predicted(text, rows):
    return lightgbm.Booster(model_str=text).predict(rows.features.toarray())


OWNERS = {
    "one": np.zeros(ROWS, int),
    "two, evenly": np.arange(ROWS) % 2,
    "two, most with one": (np.arange(ROWS) > 200).astype(int),
    "three, one without rows": 2 * (np.arange(ROWS) % 2),
}


@pytest.mark.parametrize("how", [*OWNERS, "two, each with other places and groups"])
def test_the_trees_are_those_of_one_process_whoever_has_the_rows(rows, table, how):
    apart = (table.place >= 10) | table.membership[:, 1]
    owner = OWNERS.get(how, apart.astype(int))
    texts = together(rows, Growth.of(table, SETTINGS), owner, owner.max() + 1)
    assert len(set(texts)) == 1
    np.testing.assert_allclose(predicted(texts[0], rows), official(rows, SETTINGS), rtol=0, atol=1e-7)
    assert "127.0.0.1" not in texts[0]


def test_all_early_stopping_rows_with_one_of_them(rows, table):
    (text, _) = together(rows, Growth.of(table, SETTINGS), rows.stop.astype(int), 2)
    np.testing.assert_allclose(predicted(text, rows), official(rows, SETTINGS), rtol=0, atol=1e-7)


@pytest.mark.parametrize("how", ["two, evenly", "three, one without rows"])
def test_rows_of_equal_weight(rows, table, how):
    owner, ones = OWNERS[how], np.ones(ROWS)
    rows, table = replace(rows, weight=ones), replace(table, weight=ones)
    texts = together(rows, Growth.of(table, SETTINGS), owner, owner.max() + 1)
    np.testing.assert_allclose(predicted(texts[0], rows), official(rows, SETTINGS), rtol=0, atol=1e-7)


@pytest.mark.parametrize("changes", [{"monotone": True}, {"feature_fraction": 0.6, "seed": 5}])
def test_other_settings(rows, table, changes):
    settings = replace(SETTINGS, **changes)
    (text, _) = together(rows, Growth.of(table, settings), np.arange(ROWS) % 2, 2)
    np.testing.assert_allclose(predicted(text, rows), official(rows, settings), rtol=0, atol=1e-7)


def test_without_early_stopping_rows_all_trees_are_grown(rows, table):
    every, settings = np.zeros(ROWS, dtype=bool), replace(SETTINGS, max_trees=13)
    all_fit = replace(rows, stop=every)
    growth = Growth.of(replace(table, stop=every), settings)
    (text, _) = together(all_fit, growth, np.arange(ROWS) % 2, 2)
    assert len(parse_trees(text)) == 13
    expected = official(rows, settings, stops=False)
    np.testing.assert_allclose(predicted(text, rows), expected, rtol=0, atol=1e-7)


def test_where_no_leaf_can_be_split_the_mean_is_left(rows, table):
    growth = Growth.of(replace(table, min_weight_in_leaf=1e9), SETTINGS)
    (text, _) = together(rows, growth, np.arange(ROWS) % 2, 2)
    fit = ~rows.stop
    mean = np.average(rows.target[fit], weights=rows.weight[fit])
    np.testing.assert_allclose(predicted(text, rows), mean, rtol=0, atol=1e-7)


def test_no_socket_is_left(rows, table):
    growth = Growth.of(table, replace(SETTINGS, max_trees=2))
    before = sockets()
    together(rows, growth, np.arange(ROWS) % 3, 3)
    assert sockets() == before


def sockets():
    """How many this process has."""
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return sum("socket:" in str(link.readlink()) for link in links)


def test_however_often_the_losses_are_compared(rows, table, monkeypatch):
    monkeypatch.setattr(peers, "SECONDS_AT_ONCE", 0.0)
    growth = Growth.of(table, SETTINGS)
    (text, _) = together(rows, growth, np.arange(ROWS) % 2, 2)
    monkeypatch.setattr(peers, "SECONDS_AT_ONCE", 60.0)
    assert (text, text) == tuple(together(rows, growth, np.arange(ROWS) % 2, 2))


@pytest.mark.parametrize(
    ("losses", "patience", "least", "expected"),
    [
        ([], 2, 0.0, (0, False)),
        ([5, 4, 3], 2, 0.0, (3, False)),
        ([5, 3, 4, 3], 2, 0.0, (2, True)),
        ([5, 3, 4, 2, 9], 2, 0.0, (4, False)),
        ([5, 4.9, 4.8, 4.7], 2, 0.5, (1, True)),
        ([5, 3, 4, 4, 1], 2, 0.0, (2, True)),  # what came after the end does not count
    ],
)
def test_the_best_tree(losses, patience, least, expected):
    assert best_tree(losses, patience, least) == expected

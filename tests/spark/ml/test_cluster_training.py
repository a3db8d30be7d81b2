"""Official LightGBM in every task of a stage, on rows that stay there, beside itself in one process."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import lightgbm
import numpy as np
import pytest
from pyspark.sql import functions as F

from mcspark.core.training.rounds import fit_stages
from mcspark.errors import TransientError
from mcspark.ml.cells.cells import ScoredColumns
from mcspark.ml.cells.groups import with_categories
from mcspark.ml.cells.working import WORKING, working_columns
from mcspark.ml.training import row_training
from mcspark.ml.training.cluster_training import ClusterTrainer
from mcspark.ml.training.peers import grow
from mcspark.ml.training.row_training import RowTrainer
from mcspark.ml.training.training import TreeTrainer
from mcspark.runtime.tasks.executors import slots

from .conftest import membership

OFFICIAL = f"lightgbm {lightgbm.__version__} in the cluster"


class Learned:
    """The cells and the groups of the shared model, and a trainer on rows that lie as they are told to."""

    def __init__(self, spark, fitted):
        self.spark, self.fitted = spark, fitted
        self.cells, self.groups = fitted.model.summary.cells, fitted.model.fitted
        self.settings = replace(fitted.estimator.settings, max_trees=25)

    def trainer(self, frame):
        columns = ScoredColumns("score", "label", "w", "split")
        rows = with_categories(working_columns(frame, columns, labelled=True), self.groups.families)
        return RowTrainer(
            rows, WORKING, self.groups, self.cells.bins, TreeTrainer(self.spark, 120, engine="lightgbm")
        )

    def fit(self, frame):
        trainer = self.trainer(frame)
        found = fit_stages(self.cells, self.settings, trainer)
        assert trainer.engine == OFFICIAL
        return found


@pytest.fixture(scope="module")
def learned(spark, fitted):
    return Learned(spark, fitted)


def test_the_loss_is_that_of_one_process_and_the_layout_of_the_rows_changes_nothing(learned, fitted):
    frames = [
        fitted.frame.repartition(1), fitted.frame.repartition(5, F.col("job")), fitted.frame.orderBy("label")
    ]  # fmt: skip
    texts = {learned.fit(frame).texts[0] for frame in frames}
    assert len(texts) == 1, "the same rows and the same number of tasks make the same trees, bit for bit"

    table = fitted.table
    # Every score bin of so few rows is a place of its own.
    x = np.column_stack([learned.cells.bins.assign(table["score"].to_numpy()), membership(table)]).astype(
        float
    )
    y = (table["label"] - table["score"]).to_numpy()
    fit, stop = (table["split"] == role for role in ("fit", "early_stopping"))
    w = table["w"] * table["w"][fit].sum() / (table["w"][fit] ** 2).sum()
    parameters = {
        "objective": "regression", "learning_rate": learned.settings.learning_rate, "num_leaves": 4,
        "max_depth": 2, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 20.0, "min_data_in_bin": 1,
        "max_bin": 1000, "verbosity": -1, "feature_pre_filter": False,
    }  # fmt: skip
    learn = lightgbm.Dataset(x[fit], y[fit], weight=w[fit], params=parameters)
    held_out = learn.create_valid(x[stop], y[stop], weight=w[stop])
    patience = lightgbm.early_stopping(learned.settings.early_stopping_rounds, verbose=False)
    one = lightgbm.train(parameters, learn, 25, [held_out], callbacks=[patience])

    together = lightgbm.Booster(model_str=texts.pop())
    found = together.predict(np.column_stack([table["score"], membership(table)]))
    assert together.num_trees() == one.best_iteration
    np.testing.assert_allclose(found, one.predict(x, num_iteration=one.best_iteration), rtol=0, atol=1e-6)


def test_rows_are_dealt_out_evenly_though_all_but_their_key_is_the_same(
    learned, fitted, monkeypatch, tmp_path
):
    def counted(part, growth, peers, threads):
        Path(tmp_path, f"{peers.rank}-{len(part.target)}").touch()
        return grow(part, replace(growth, max_trees=1), peers, threads)

    monkeypatch.setattr(row_training, "ClusterTrainer", partial(ClusterTrainer, grow=counted))
    same = {"SEX": 1, "AGEP": 40, "job": "a", "score": 0.5, "label": 1.0, "w": 1.0, "split": "fit"}
    kinds = dict(fitted.frame.dtypes)
    learned.fit(fitted.frame.withColumns({k: F.lit(v).cast(kinds[k]) for k, v in same.items()}))
    counts = [int(file.name.partition("-")[2]) for file in tmp_path.iterdir()]
    assert sum(counts) == len(fitted.table)
    assert min(counts) > 0.45 * sum(counts)


def test_more_tasks_than_rows(learned, fitted):
    assert slots(learned.spark) == 2
    trainer = learned.trainer(fitted.frame.where("split = 'fit'").limit(1))

    def train(table, settings):
        return trainer(replace(table, stop=np.zeros_like(table.stop)), settings)

    (only,) = fit_stages(learned.cells, learned.settings, train).rounds
    assert only.trees == 1, "one row is no leaf; its residual is all there is"


def test_a_task_that_dies_ends_the_stage_and_every_process_of_it(learned, fitted, monkeypatch, tmp_path):
    def dying(part, growth, peers, threads):
        Path(tmp_path, str(os.getpid())).touch()
        if peers.rank == 1:
            threading.Timer(2, os._exit, (9,)).start()
        return grow(part, replace(growth, max_trees=10**7, patience=10**7), peers, threads)

    monkeypatch.setattr(row_training, "ClusterTrainer", partial(ClusterTrainer, grow=dying))
    start = time.monotonic()
    with pytest.raises(TransientError, match=r"work together has ended.*try again in a new process"):
        learned.fit(fitted.frame)
    assert time.monotonic() - start < 60
    processes = [Path("/proc", file.name) for file in tmp_path.iterdir()]
    assert len(processes) == 2
    while any(process.exists() for process in processes):
        assert time.monotonic() - start < 90, "what has lost its peer is ended by Spark"
        time.sleep(0.2)


@pytest.mark.parametrize("stopped", [False, True], ids=["all work", "one is stopped"])
def test_a_training_without_end_is_ended(learned, fitted, monkeypatch, tmp_path, stopped):
    def endless(part, growth, peers, threads):
        Path(tmp_path, str(os.getpid())).touch()
        if stopped and peers.rank == 1:  # no peer hears of it: its connections stay
            threading.Timer(2, os.kill, (os.getpid(), signal.SIGSTOP)).start()
        return grow(part, replace(growth, max_trees=10**7, patience=10**7), peers, threads)

    def quick(spark, seconds):
        return ClusterTrainer(spark, 8, endless)

    monkeypatch.setattr(row_training, "ClusterTrainer", quick)
    with pytest.raises(TransientError, match="did not end within 8 s and was cancelled"):
        learned.fit(fitted.frame)
    processes = [Path("/proc", file.name) for file in tmp_path.iterdir()]
    assert len(processes) == 2
    end = time.monotonic() + 30
    while any(process.exists() for process in processes):
        assert time.monotonic() < end
        time.sleep(0.2)

"""Official LightGBM as the trainer of an ensemble: the oracle for SynapseML, and a stand-in without Spark."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np

from mcspark.core.training.training_table import TrainingTable, TreeSettings

REPEATS = 3  # LightGBM's bins hold three rows at least: a cell alone in its bin must be kept apart


def features(place, membership):
    """The feature matrix of the trees: score bin (or score), then the groups."""
    return np.column_stack([np.asarray(place, dtype=np.float64), np.asarray(membership, dtype=np.float64)])


def train_official(table: TrainingTable, settings: TreeSettings) -> tuple[lgb.Booster, int]:
    """The booster with all its trees, and its best iteration: all of them without early-stopping cells."""
    rows = np.repeat(np.arange(len(table.place)), REPEATS)
    x = features(table.place, table.membership[table.signature])[rows]
    stop, weight = table.stop[rows], table.weight[rows] / REPEATS
    parameters = {
        "objective": {"identity": "regression", "logit": "cross_entropy"}[settings.link],
        "learning_rate": settings.learning_rate,
        "feature_fraction": settings.feature_fraction,
        "num_leaves": 4,
        "max_depth": 2,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": table.min_weight_in_leaf,
        "max_delta_step": {"identity": 0.0, "logit": 1.0 / settings.learning_rate}[settings.link],
        "max_bin": max(len(np.unique(table.place)) + 2, 16),
        "bin_construct_sample_cnt": len(rows) + 1,
        "boost_from_average": table.offset is None,
        "seed": settings.seed,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    }
    if settings.monotone:
        parameters["monotone_constraints"] = [1, *[0] * table.membership.shape[1]]

    def data(part, reference=None):
        offset = None if table.offset is None else table.offset[rows][part]
        return lgb.Dataset(
            x[part], table.target[rows][part], weight=weight[part], init_score=offset, reference=reference
        )

    train = data(~stop)
    held_out = [data(stop, train)] if stop.any() else []
    patience = (
        [lgb.early_stopping(settings.early_stopping_rounds, verbose=False, min_delta=table.min_improvement)]
        if stop.any() else []
    )  # fmt: skip
    booster = lgb.train(
        parameters,
        train,
        settings.max_trees,
        valid_sets=held_out,
        callbacks=patience,
        keep_training_booster=True,
    )
    return booster, booster.best_iteration or booster.num_trees()


def official(table: TrainingTable, settings: TreeSettings) -> str:
    """A ``core.training_table.Train``."""
    booster, best = train_official(table, settings)
    return booster.model_to_string(num_iteration=best)


def surprised(cells: int = 300) -> TrainingTable:
    """Labels of 1 where the log-odds begin at -6, of 0 where at 6: a Newton step goes 400 far."""
    rng = np.random.default_rng(1)
    low = rng.integers(0, 2, cells).astype(bool)
    return TrainingTable(
        place=rng.integers(0, 9, cells),
        signature=low.astype(np.int64),
        membership=np.array([[False], [True]]),
        target=low.astype(np.float64),
        weight=np.full(cells, 100.0),
        stop=np.zeros(cells, dtype=bool),
        offset=np.where(low, -6.0, 6.0),
        min_weight_in_leaf=1e-3,
        rows=np.full(cells, 100.0),
        unit=1.0,
    )

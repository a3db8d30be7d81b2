"""Training on cells beside training on the rows themselves, by SynapseML and by LightGBM's own library."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mcspark.benchmark.features import memberships, with_features
from mcspark.benchmark.work import Work
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.cells.levels import FloatArray, IntArray, base_levels
from mcspark.core.training.training_table import TreeSettings
from mcspark.engine.literal import literal_reader
from mcspark.ml.cells.cells import ScoredColumns, choose_bins, make_cells
from mcspark.ml.cells.fixed_point import FixedPoint
from mcspark.ml.cells.groups import GroupSet, with_categories
from mcspark.ml.multicalibrator import Multicalibrator, MulticalibratorModel
from mcspark.ml.training.trees import SynapseTrainer

COLUMNS = ScoredColumns("score", "label", None, "split")


@dataclass(frozen=True)
class Rows:
    """Labelled rows in memory.

    Parameters
    ----------
    score, label : ndarray, shape (N,)
    role : ndarray of int, shape (N,)
    membership : ndarray of bool, shape (N, G)
    groups : tuple of str, length G
    """

    score: FloatArray
    label: FloatArray
    role: IntArray
    membership: NDArray[np.bool_]
    groups: tuple[str, ...]


@dataclass
class Training:
    """The ways to train on the rows of one population, all with the same number of trees.

    Parameters
    ----------
    work : Work
        After :meth:`Work.calibrate`, whose split is used.
    """

    work: Work

    def prepare(self) -> None:
        """Write the labelled rows with their split and attributes."""
        rows = self.work.rows.where("label is not null")
        rows.drop("calibrated_score").write.mode("overwrite").parquet(self._path)

    @property
    def settings(self) -> TreeSettings:
        """Those of the calibrator; no tree number below the wanted one ends the training."""
        trees = self.work.trees
        return TreeSettings(max_trees=trees, early_stopping_rounds=trees)

    def on_cells(self) -> MulticalibratorModel:
        """From the joined rows to the model: bins, cells, trees, additive form."""
        return self.from_cells(*self.cells())

    def cells(self) -> tuple[Cells, FittedGroups]:
        """The cells of the joined rows."""
        config = self.work.configuration("calibrated")
        plan = GroupSet.from_config(config.groups)
        frame = with_categories(self.rows, plan.families)
        scale = FixedPoint.of(frame, None)
        base = base_levels(config.evaluation.levels)
        learning = frame.where(F.col("split") != Role.test.name)
        bins = choose_bins(learning, COLUMNS, base, config.calibrator.score_bins, scale)
        with make_cells(frame, COLUMNS, plan.families, bins, scale) as table:
            return table.collect_chosen(plan)

    def from_cells(self, cells: Cells, groups: FittedGroups) -> MulticalibratorModel:
        """The second half of :meth:`on_cells`, from what the driver holds."""
        settings = self.settings
        estimator = Multicalibrator(
            recipe="paper", maxTrees=settings.max_trees, earlyStoppingRounds=settings.max_trees
        )
        return estimator.fit_cells(cells, groups, SynapseTrainer(self.work.spark), saturation=False)

    def by_lightgbm(self, rows: Rows) -> Any:
        """LightGBM's own library on rows in memory, with the same rows held out."""
        return train_lightgbm(rows, self.settings, stop_early=False)

    def by_synapse(self, featured: DataFrame) -> str:
        """SynapseML on the rows of :meth:`featured`: the usual way."""
        from synapse.ml.lightgbm import LightGBMRegressor  # noqa: PLC0415

        settings = self.settings
        estimator = LightGBMRegressor(
            labelCol="residual",
            validationIndicatorCol="stop",
            numIterations=settings.max_trees,
            earlyStoppingRound=settings.max_trees,
            learningRate=settings.learning_rate,
            numLeaves=4,
            maxDepth=2,
            minDataInLeaf=settings.min_rows_in_leaf,
        )
        text: str = estimator.fit(featured).getNativeModel()
        return text

    def featured(self, groups: tuple[str, ...]) -> DataFrame:
        """The rows that are learned from as SynapseML wants them, kept in memory."""
        rows = self.rows.where(F.col("split") != Role.test.name).select(
            "score",
            *(name for name in self.rows.columns if name.isupper()),
            (F.col("label") - F.col("score")).alias("residual"),
            (F.col("split") == Role.early_stopping.name).alias("stop"),
        )
        frame = with_features(rows, groups).select("features", "residual", "stop")
        frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
        frame.count()
        return frame

    def in_memory(self, groups: tuple[str, ...]) -> Rows:
        """The rows in the memory of this process."""
        roles = ", ".join(f"'{role.name}'" for role in Role)
        table = self.rows.select(
            "score",
            "label",
            F.expr(f"array_position(array({roles}), split) - 1").alias("role"),
            *(value.alias(name) for name, value in memberships(groups).items()),
        ).toPandas()
        return Rows(
            table["score"].to_numpy(np.float64),
            table["label"].to_numpy(np.float64),
            table["role"].to_numpy(np.int64),
            table[[f"g{i}" for i in range(len(groups))]].to_numpy(np.bool_),
            groups,
        )

    @cached_property
    def rows(self) -> DataFrame:
        """The rows that :meth:`prepare` has written."""
        return literal_reader(self.work.spark).parquet(self._path)

    @property
    def _path(self) -> str:
        return f"{self.work.population.folder}/labelled"


def train_lightgbm(rows: Rows, settings: TreeSettings, *, stop_early: bool) -> Any:
    """A booster of LightGBM's own library, fitted to the residual of the fitting rows.

    Parameters
    ----------
    rows : Rows
    settings : TreeSettings
    stop_early : bool
        Whether the held-out rows end the training; they are evaluated after every tree either way.
    """
    lightgbm = import_module("lightgbm")
    features = np.column_stack([rows.score, rows.membership]).astype(np.float64)
    fit, stop = rows.role == Role.fit, rows.role == Role.early_stopping
    residual = rows.label - rows.score
    train = lightgbm.Dataset(features[fit], residual[fit])
    held_out = lightgbm.Dataset(features[stop], residual[stop], reference=train)
    parameters = {
        "objective": "regression",
        "num_leaves": 4,
        "max_depth": 2,
        "learning_rate": settings.learning_rate,
        "min_data_in_leaf": settings.min_rows_in_leaf,
        "seed": settings.seed,
        "verbosity": -1,
    }
    patience = [lightgbm.early_stopping(settings.early_stopping_rounds, verbose=False)] if stop_early else []
    return lightgbm.train(parameters, train, settings.max_trees, valid_sets=[held_out], callbacks=patience)

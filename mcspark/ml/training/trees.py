"""Growing one ensemble with SynapseML LightGBM, guarded against what SynapseML lets through.

Cells are sorted, bins are fixed beforehand, the binning sample covers every cell and one task trains, so the
model does not depend on partitioning or on the number of executors.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyspark import StorageLevel
from pyspark.ml.feature import VectorAssembler, VectorSizeHint
from pyspark.ml.linalg import SparseVector, VectorUDT
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType

from mcspark.core.cells.levels import FloatArray
from mcspark.core.model.lightgbm_text import keep_trees, parse_trees
from mcspark.core.model.tree import Tree
from mcspark.core.training.lightgbm_parameters import lightgbm_parameters
from mcspark.core.training.training_table import TrainingTable, TreeSettings
from mcspark.errors import McsparkError
from mcspark.runtime.process.watchdog import time_limit
from mcspark.runtime.tasks.executors import executors, slots

_MIN_ROWS_IN_BIN = 3
"""LightGBM merges bins with fewer rows and SynapseML cannot change it: cells of small tables are repeated."""

_FEW_CELLS = 50_000

_SYNAPSE_NAMES = {"bin_construct_sample_cnt": "binSampleCount"}
"""Of LightGBM's parameters: SynapseML writes the others alike, in camel case."""


@dataclass
class SynapseTrainer:
    """Trains ensembles in the Spark session, with a wall-clock limit.

    Parameters
    ----------
    spark : SparkSession
        With the SynapseML LightGBM classes.
    timeout_seconds : float
        Limit of one ensemble; a fit that hangs is cancelled and raises ``TransientError``.
    """

    spark: SparkSession
    timeout_seconds: float = 3600
    _groups: tuple[NDArray[np.bool_], DataFrame] | None = field(default=None, init=False, repr=False)

    def __call__(self, table: TrainingTable, settings: TreeSettings) -> str:
        """LightGBM text of one ensemble, cut at the best tree (see ``core.training_table.Train``)."""
        check_table(table)
        repeated = _repeat_few(table)
        with time_limit(self.spark, self.timeout_seconds, "training the trees"):
            # One task trains: wait here, within the limit, until there is a slot for it.
            threads = max(executor.cores for executor in executors(self.spark)) if slots(self.spark) else 1
            with materialised(self._frame(repeated)) as frame:
                estimator = without_copies(new_estimator(repeated, settings), self.spark)
                # With one task LightGBM itself bins all of the cells, and in bulk they come in faster.
                estimator = estimator.setNumTasks(1).setNumThreads(threads).setDataTransferMode("bulk")
                text: str = estimator.fit(frame).getNativeModel()
        return cut_at_best(text, table, settings)

    def _frame(self, table: TrainingTable) -> DataFrame:
        columns = {
            "place": table.place.astype(np.float64),
            "signature": table.signature.astype(np.int32),
            "target": table.target,
            "weight": table.weight,
            "stop": table.stop,
            "order": np.arange(len(table.place)),
        }
        if table.offset is not None:
            columns["offset"] = table.offset
        cells = self.spark.createDataFrame(pd.DataFrame(columns))
        # A broadcast join and an ordered coalesce keep the order of the cells.
        joined = cells.join(F.broadcast(self._signatures(table.membership)), "signature")
        features = VectorAssembler(inputCols=["place", "groups"], outputCol="features").transform(joined)
        return self._in_one_part(features.drop("place", "groups", "signature"))

    def _signatures(self, membership: NDArray[np.bool_]) -> DataFrame:
        """The groups of each signature; all ensembles of a fit have the same, and they take long to send."""
        known = self._groups  # trials of a sweep share this trainer, each in a thread of its own
        if known is None or known[0] is not membership:
            frame = self.spark.createDataFrame(
                [(i, sparse_groups(row)) for i, row in enumerate(membership)],
                StructType([StructField("signature", IntegerType()), StructField("groups", VectorUDT())]),
                verifySchema=False,
            )
            # Told the size, the assembler need not run a job to find it.
            hint = VectorSizeHint(inputCol="groups", size=membership.shape[1], handleInvalid="optimistic")
            self._groups = known = membership, hint.transform(frame)
        return known[1]

    def _in_one_part(self, features: DataFrame) -> DataFrame:
        if not speculates(self.spark):
            return features.drop("order").coalesce(1)
        # A barrier task may not gather other partitions; a shuffle may, but knows no order.
        return features.repartition(1).sortWithinPartitions("order").drop("order")


def synapse() -> str:
    """Name and version of SynapseML."""
    try:
        return f"synapseml {version('synapseml')}"
    except PackageNotFoundError:
        return "synapseml"


def new_estimator(table: TrainingTable, settings: TreeSettings) -> Any:
    """A new SynapseML estimator: a used one would keep the bins of the data it was first fitted to."""
    from synapse.ml.lightgbm import LightGBMRegressor  # noqa: PLC0415  (scoring needs no SynapseML)

    shared = lightgbm_parameters(table, settings)
    estimator = LightGBMRegressor(
        **{_SYNAPSE_NAMES.get(name, _camel(name)): value for name, value in shared.items()},
        featuresCol="features",
        labelCol="target",
        weightCol="weight",
        numIterations=settings.max_trees,
        samplingMode="global",
        passThroughArgs="force_col_wise=true",
    )
    if table.stop.any():
        estimator.setValidationIndicatorCol("stop").setEarlyStoppingRound(settings.early_stopping_rounds)
        estimator.setImprovementTolerance(float(table.min_improvement))
    return estimator.setInitScoreCol("offset") if table.offset is not None else estimator


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))


def without_copies(estimator: Any, spark: SparkSession) -> Any:
    """The estimator, told to run barrier tasks where Spark speculates: of those alone it makes no copies.

    A copy of a training task would dial into the network of the first one. Barrier tasks do not go with
    executors that come and go.
    """
    return estimator.setUseBarrierExecutionMode(speculates(spark))


def speculates(spark: SparkSession) -> bool:
    """Whether Spark may run a copy of a slow task, and barrier tasks can be had against it."""
    conf = spark.conf
    copies = conf.get("spark.speculation", "false") == "true"
    moves = conf.get("spark.dynamicAllocation.enabled", "false") == "true"
    return copies and not moves


def check_table(table: TrainingTable) -> None:
    """What SynapseML would train on silently, or hang on, is refused here."""
    for name in ("target", "weight", "offset"):
        values = getattr(table, name)
        if values is not None and not np.isfinite(values).all():
            raise McsparkError(
                f"{(~np.isfinite(values)).sum()} cells have no finite {name}; nothing was trained"
            )
    if not (table.weight > 0).all():
        raise McsparkError("a cell without weight reached the trainer; nothing was trained")
    if table.stop.all():
        raise McsparkError("training needs cells that are not for early stopping; nothing was trained")


def _repeat_few(table: TrainingTable) -> TrainingTable:
    """The same table with every cell split in three equal parts, where cells are few."""
    if len(table.place) > _FEW_CELLS:
        return table
    rows = np.repeat(np.arange(len(table.place)), _MIN_ROWS_IN_BIN)
    return replace(
        table,
        place=table.place[rows],
        signature=table.signature[rows],
        target=table.target[rows],
        weight=table.weight[rows] / _MIN_ROWS_IN_BIN,
        stop=table.stop[rows],
        offset=None if table.offset is None else table.offset[rows],
        rows=table.rows[rows] / _MIN_ROWS_IN_BIN,
    )


def sparse_groups(row: NDArray[np.bool_]) -> SparseVector:
    """The groups of a signature as Spark ML holds them."""
    inside = np.flatnonzero(row)
    return SparseVector(len(row), inside, np.ones(len(inside)))


@contextmanager
def materialised(frame: DataFrame) -> Iterator[DataFrame]:
    """The frame, computed and kept until the block ends."""
    # SynapseML counts rows on another plan than it trains on; without this, the two may disagree.
    frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        frame.count()
        yield frame
    finally:
        frame.unpersist()


def cut_at_best(text: str, table: TrainingTable, settings: TreeSettings) -> str:
    """LightGBM cuts at the best tree only if its patience ran out; at the cap the cut is made here."""
    trees = parse_trees(text)
    if len(trees) < settings.max_trees or not table.stop.any():
        return text
    losses = held_out_curve(text, table, settings)
    return keep_trees(text, int(np.argmin(losses)) + 1)


def held_out_curve(text: str, table: TrainingTable, settings: TreeSettings) -> FloatArray:
    """Loss on the early-stopping cells after each tree, shape (number of trees,)."""
    stop = table.stop
    place = table.place[stop].astype(np.int32)
    groups = np.ascontiguousarray(table.membership.T[:, table.signature[stop]])
    target, weight = table.target[stop], table.weight[stop] / table.weight[stop].sum()
    total = np.zeros(len(place)) if table.offset is None else table.offset[stop].copy()
    losses = []
    for tree in parse_trees(text):
        total += tree.leaf_value.take(_leaves(tree, place, groups))
        if settings.link == "identity":
            loss = np.square(total - target)
        else:
            loss = np.logaddexp(0, total) - target * total
        losses.append(float((loss * weight).sum()))
    return np.asarray(losses)


def _leaves(tree: Tree, place: NDArray[np.int32], groups: NDArray[np.bool_]) -> NDArray[np.int8]:
    """The leaf of each cell; the work is done on bytes, of which a machine takes many at once."""

    def is_right(node: int) -> NDArray[np.bool_]:
        feature, threshold = int(tree.split_feature[node]), float(tree.threshold[node])
        if feature == 0:
            return np.asarray(place > np.int32(np.floor(threshold)), dtype=np.bool_)
        outside, inside = threshold < 0, threshold < 1
        return groups[feature - 1] if inside and not outside else np.full(len(place), inside)

    def leaf(node: int) -> NDArray[np.int8] | np.int8:
        if node < 0:
            return np.int8(-node - 1)
        left, right = leaf(int(tree.left_child[node])), leaf(int(tree.right_child[node]))
        return left + is_right(node) * (right - left)

    return np.broadcast_to(leaf(0 if len(tree.split_feature) else -1), place.shape)

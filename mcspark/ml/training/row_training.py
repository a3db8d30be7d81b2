"""Training on rows instead of cells: the usual way, kept to be compared with.

The trees see the same score bins as the cells do, so that only the compression differs. Rounds after the
first, and the logit link, are trained on cells, since what they start from is no column of the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, MapType, StructField, StructType

from mcspark.core.cells.cells import Role
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.training.training_table import TrainingTable, TreeSettings
from mcspark.engine.errors import SPARK_ERRORS
from mcspark.ml.cells.cells import ScoredColumns
from mcspark.ml.cells.levels import int_array, with_bin
from mcspark.ml.cells.signatures import with_signature, word_names
from mcspark.ml.training import driver_training
from mcspark.ml.training.cluster_training import (
    PLACE,
    SPREAD,
    STOP,
    TARGET,
    WEIGHT,
    ClusterTrainer,
    check_cluster,
)
from mcspark.ml.training.training import TreeTrainer
from mcspark.ml.training.trees import cut_at_best, materialised, new_estimator, sparse_groups, without_copies
from mcspark.runtime.columns import column
from mcspark.runtime.process.failures import explained, native_failure
from mcspark.runtime.process.progress import tell
from mcspark.runtime.process.watchdog import time_limit
from mcspark.runtime.tasks.executors import slots

MAX_STOPPING_ROWS = 500_000
"""SynapseML copies every early-stopping row to the driver and to each executor: no more than about these."""

_PLACES = 2**20


@dataclass
class RowTrainer:
    """Trains first ensembles on rows; used like :class:`mcspark.ml.training.training.TreeTrainer`.

    Parameters
    ----------
    frame : DataFrame
        Labelled rows with category columns; a finite score, label and weight in each.
    columns : ScoredColumns
    groups : FittedGroups
    bins : ScoreBins
    cells : TreeTrainer
        Trains every other ensemble; where that is SynapseML, it trains on rows too, or else the official
        LightGBM does, in the cluster.
    """

    frame: DataFrame
    columns: ScoredColumns
    groups: FittedGroups
    bins: ScoreBins
    cells: TreeTrainer

    def __call__(self, table: TrainingTable, settings: TreeSettings) -> str:
        """LightGBM text of one ensemble, cut at the best tree (see ``core.training_table.Train``)."""
        if table.place_of_bin is None or settings.link != "identity":
            return self.cells(table, settings)
        tell(f"growing at most {settings.max_trees:,} trees")
        rows = self._rows(table)
        if self.cells.by_synapse:
            try:
                return self._by_synapse(rows, table, settings)
            except SPARK_ERRORS as error:
                if (reason := native_failure(error)) is None:
                    raise explained(error) or error from error
                self.cells.fall_back(reason)
                check_cluster(self.cells.spark)
        official = ClusterTrainer(self.cells.spark, self.cells.timeout_seconds)
        return official(rows, self.groups, table, settings)

    @property
    def engine(self) -> str:
        """Name and version of what has trained."""
        return self.cells.engine if self.cells.by_synapse else f"{driver_training.engine()} in the cluster"

    def _by_synapse(self, rows: DataFrame, table: TrainingTable, settings: TreeSettings) -> str:
        spark = self.cells.spark
        with time_limit(spark, self.cells.timeout_seconds, "training the trees on rows"):
            tasks = slots(spark)
            with materialised(self._vectors(rows, table).repartition(tasks)) as frame:
                estimator = without_copies(new_estimator(table, settings), spark).setNumTasks(tasks)
                text = str(estimator.fit(frame).getNativeModel())
        return cut_at_best(text, table, settings)

    def _rows(self, table: TrainingTable) -> DataFrame:
        c = self.columns
        weight = column(c.weight) if c.weight else F.lit(1.0)
        rows = self.frame.where((column(str(c.split)) != Role.test.name) & (weight > 0))
        rows = with_signature(with_bin(rows, c.score, self.bins, "__bin"), self.groups)
        stops = F.lit(bool(table.stop.any()))  # none are set aside for trees that are grown again
        assert table.place_of_bin is not None
        hashed = [f.name for f in self.frame.schema.fields if not isinstance(f.dataType, MapType)]
        return rows.select(
            *word_names(self.groups),
            F.get(int_array(table.place_of_bin), column("__bin")).alias(PLACE),
            (column(c.label) - column(c.score)).alias(TARGET),
            (weight * table.unit).cast("double").alias(WEIGHT),
            (stops & (column(str(c.split)) == Role.early_stopping.name)).alias(STOP),
            F.xxhash64(*map(column, hashed)).alias(SPREAD),
        )

    def _vectors(self, rows: DataFrame, table: TrainingTable) -> DataFrame:
        """The rows as SynapseML takes them."""
        share = MAX_STOPPING_ROWS / max(int(table.rows[table.stop].sum()), 1)
        if share < 1:
            drawn = F.pmod(F.col(SPREAD), F.lit(_PLACES)) < share * _PLACES
            rows = rows.where(~F.col(STOP) | drawn)
        rows = rows.join(F.broadcast(self._signatures(rows)), word_names(self.groups))
        rows = rows.withColumn(PLACE, F.col(PLACE).cast("double"))
        features = VectorAssembler(inputCols=[PLACE, "groups"], outputCol="features").transform(rows)
        return features.select("features", TARGET, WEIGHT, STOP)

    def _signatures(self, rows: DataFrame) -> DataFrame:
        names = word_names(self.groups)
        words = rows.select(*names).distinct().toPandas()[names].to_numpy(np.int64)
        members = self.groups.membership(words)
        schema = StructType(
            [*[StructField(n, LongType()) for n in names], StructField("groups", VectorUDT())]
        )
        data = [(*map(int, w), sparse_groups(m)) for w, m in zip(words, members, strict=True)]
        return self.cells.spark.createDataFrame(data, schema)

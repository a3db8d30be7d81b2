"""Training on rows instead of cells: the usual way, kept to be compared with.

The trees see the same score bins as the cells do, so that only the compression differs. Rounds after the
first, and the logit link, are trained on cells, since what they start from is no column of the table.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from mcspark.core.cells.cells import Role
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.training.training_table import TrainingTable, TreeSettings
from mcspark.engine.errors import SPARK_ERRORS
from mcspark.ml.cells import ScoredColumns
from mcspark.ml.groups import with_signature, word_names
from mcspark.ml.levels import int_array, with_bin
from mcspark.ml.training import TreeTrainer
from mcspark.ml.trees import cut_at_best, materialised, new_estimator, sparse_groups, without_copies
from mcspark.runtime.columns import column
from mcspark.runtime.executors import slots
from mcspark.runtime.failures import explained
from mcspark.runtime.watchdog import time_limit

MAX_STOPPING_ROWS = 500_000
"""SynapseML copies every early-stopping row to the driver and to each executor: no more than about these."""

_PLACES = 2**20


@dataclass
class RowTrainer:
    """Trains the first ensemble on rows; used like :class:`mcspark.ml.training.TreeTrainer`.

    Parameters
    ----------
    frame : DataFrame
        Labelled rows with category columns; a finite score, label and weight in each.
    columns : ScoredColumns
    groups : FittedGroups
    bins : ScoreBins
    cells : TreeTrainer
        Trains every later ensemble.
    """

    frame: DataFrame
    columns: ScoredColumns
    groups: FittedGroups
    bins: ScoreBins
    cells: TreeTrainer
    _fitted: bool = field(default=False, init=False)

    def __call__(self, table: TrainingTable, settings: TreeSettings) -> str:
        """LightGBM text of one ensemble, cut at the best tree (see ``core.training_table.Train``)."""
        if self._fitted or settings.link != "identity":
            return self.cells(table, settings)
        self._fitted = True
        try:
            text = self._grown(table, settings)
        except SPARK_ERRORS as error:
            raise explained(error) or error from error
        return cut_at_best(text, table, settings)

    @property
    def engine(self) -> str:
        """Name and version of what has trained."""
        return self.cells.engine

    def _grown(self, table: TrainingTable, settings: TreeSettings) -> str:
        spark = self.cells.spark
        with time_limit(spark, self.cells.timeout_seconds, "training the trees on rows"):
            tasks = slots(spark)
            with materialised(self._rows(table).repartition(tasks)) as frame:
                estimator = without_copies(new_estimator(table, settings), spark).setNumTasks(tasks)
                return str(estimator.fit(frame).getNativeModel())

    def _rows(self, table: TrainingTable) -> DataFrame:
        c, words = self.columns, word_names(self.groups)
        weight = column(c.weight) if c.weight else F.lit(1.0)
        rows = self.frame.where((column(str(c.split)) != Role.test.name) & (weight > 0))
        rows = with_signature(with_bin(rows, c.score, self.bins, "__bin"), self.groups)
        stop = column(str(c.split)) == Role.early_stopping.name
        share = MAX_STOPPING_ROWS / max(int(table.rows[table.stop].sum()), 1)
        if share < 1:
            drawn = F.pmod(F.xxhash64(*map(column, rows.columns)), F.lit(_PLACES)) < share * _PLACES
            rows = rows.where(~stop | drawn)
        rows = rows.join(F.broadcast(self._signatures(rows)), words)
        assert table.place_of_bin is not None  # only the first round is trained on rows
        place = F.get(int_array(table.place_of_bin), column("__bin"))
        rows = rows.select(
            place.cast("double").alias("place"),
            column("groups"),
            (column(c.label) - column(c.score)).alias("target"),
            (weight * table.unit).cast("double").alias("weight"),
            stop.alias("stop"),
        )
        return VectorAssembler(inputCols=["place", "groups"], outputCol="features").transform(rows)

    def _signatures(self, rows: DataFrame) -> DataFrame:
        names = word_names(self.groups)
        words = rows.select(*names).distinct().toPandas()[names].to_numpy(np.int64)
        members = self.groups.membership(words)
        schema = StructType(
            [*[StructField(n, LongType()) for n in names], StructField("groups", VectorUDT())]
        )
        data = [(*map(int, w), sparse_groups(m)) for w, m in zip(words, members, strict=True)]
        return self.cells.spark.createDataFrame(data, schema)

"""Growing an ensemble on rows that stay in the cluster, with the official LightGBM in every task.

The tasks run at once, in one barrier stage, and train together (see :mod:`mcspark.ml.training.peers`). Spark
watches over them: one that dies ends the stage, and Spark ends the others, which LightGBM would let wait for
ever.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import BarrierTaskContext
from pyspark.sql import DataFrame, SparkSession

from mcspark.core.cells.groups import FittedGroups, distinct_rows
from mcspark.core.training.training_table import TrainingTable, TreeSettings
from mcspark.engine.choice import engine_of
from mcspark.engine.errors import SPARK_ERRORS
from mcspark.errors import ConfigurationError, McsparkError, TransientError
from mcspark.ml.cells.signatures import word_names
from mcspark.ml.training.peers import Growth, Part, Peers, grow
from mcspark.runtime.process.failures import explained
from mcspark.runtime.process.watchdog import GRACE_SECONDS, time_limit
from mcspark.runtime.tasks.archives import quick_to_follow
from mcspark.runtime.tasks.executors import is_local, slots
from mcspark.runtime.tasks.ports import address_towards, held_port
from mcspark.runtime.tasks.preflight import compare_executors

PLACE, TARGET, WEIGHT, STOP = "place", "target", "weight", "stop"
"""Columns of the rows that are trained on, beside the words of their signatures."""

SPREAD = "spread"
"""A hash of each row, by which the rows are dealt out evenly."""

_MOST_MEMBERSHIPS = 20_000_000  # true or false, that a task lays out at once

_GROWN = re.compile(r"(?m)^(?:split_feature|threshold|leaf_value)=.*$")
_COLUMNS = "trees string, text string"
_SCHEMA = pa.schema([("trees", pa.string()), ("text", pa.string())])

Grow = Callable[[Part, Growth, Peers, int], str]
"""What each task does with its rows, see :func:`mcspark.ml.training.peers.grow`."""


@dataclass(frozen=True)
class ClusterTrainer:
    """Trains an ensemble on rows, in as many tasks as run at once.

    With as many tasks, the same rows make the same trees, bit for bit: a hash deals them out, and each task
    sorts its own. With another number of tasks the sums are rounded otherwise.

    Parameters
    ----------
    spark : SparkSession
    timeout_seconds : float
        Wall-clock limit of one ensemble.
    grow : callable
        What each task does; for tests.
    """

    spark: SparkSession
    timeout_seconds: float = 3600
    grow: Grow = grow

    def __call__(
        self, rows: DataFrame, groups: FittedGroups, table: TrainingTable, settings: TreeSettings
    ) -> str:
        """LightGBM text of the ensemble, cut at the best tree.

        Parameters
        ----------
        rows : DataFrame
            Words of the signature, :data:`PLACE` … :data:`SPREAD`; each of some weight.
        groups : FittedGroups
        table : TrainingTable
            The same rows summed up.
        settings : TreeSettings

        Raises
        ------
        TransientError
            If it takes too long, or a task is lost.
        """
        what = "training the trees in the cluster"
        try:
            with time_limit(self.spark, self.timeout_seconds, what):
                tasks = slots(self.spark)  # more would wait for each other for ever
                dealt = rows.repartition(tasks, SPREAD).drop(SPREAD)
                train = partial(
                    _train, groups=groups, growth=Growth.of(table, settings), grow=self.grow,
                    seconds=self.timeout_seconds + GRACE_SECONDS,
                )  # fmt: skip
                found = dealt.mapInArrow(quick_to_follow(train), _COLUMNS, barrier=True).collect()
        except SPARK_ERRORS as error:
            raise explained(error) or error from error
        if len({row["trees"] for row in found}) > 1:
            raise McsparkError(f"the {tasks} tasks that train together have grown different trees")
        return str(next(row["text"] for row in found if row["text"]))


def check_cluster(spark: SparkSession) -> None:
    """Refuse a session in which the official LightGBM cannot train in every task.

    Raises
    ------
    ConfigurationError
        If executors come and go, or one lacks the driver's LightGBM.
    """
    engine = engine_of(spark)
    if not is_local(spark) and spark.conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        raise ConfigurationError(
            "calibrator.training: rows trains in all executors at once, and Spark starts no such stage where "
            "executors come and go; set spark.dynamicAllocation.enabled=false, or calibrator.training: cells"
        )
    if not engine.workers_are_the_drivers():
        compare_executors(spark, {"LightGBM": "lightgbm"})


def _train(
    batches: Iterable[pa.RecordBatch], groups: FittedGroups, growth: Growth, grow: Grow, seconds: float
) -> Iterator[pa.RecordBatch]:
    context = BarrierTaskContext.get()
    with _ended_after(seconds):
        part = _part(batches, groups)
        peers = [info.address for info in context.getTaskInfos()]
        with held_port() as port:
            addresses = context.allGather(f"{address_towards(peers)}:{port}")
        # LightGBM opens the port itself, and the others dial again until it has.
        minutes = math.ceil(seconds / 60)
        own = Peers(addresses, context.partitionId(), context.allGather, minutes)
        text = grow(part, growth, own, max(context.cpus(), 1))
    trees = hashlib.sha256("\n".join(_GROWN.findall(text)).encode()).hexdigest()
    columns = {"trees": [trees], "text": [text if own.rank == 0 else None]}
    yield pa.RecordBatch.from_pydict(columns, schema=_SCHEMA)


def _part(batches: Iterable[pa.RecordBatch], groups: FittedGroups) -> Part:
    from scipy.sparse import csr_matrix, hstack, vstack  # noqa: PLC0415

    names = word_names(groups)
    columns = _sorted_columns(batches, names)
    words = np.stack([columns[name] for name in names], axis=1)
    width = 1 + len(groups.base_names) + len(groups.pairs)
    features = [csr_matrix((0, width), dtype=np.float32)]
    at_once = max(_MOST_MEMBERSHIPS // width, 1)
    for start in range(0, len(words), at_once):
        some = slice(start, start + at_once)
        signatures, signature = distinct_rows(words[some])
        inside = csr_matrix(groups.membership(signatures), dtype=np.float32)[signature]
        place = csr_matrix(columns[PLACE][some, None], dtype=np.float32)
        features.append(hstack([place, inside], format="csr"))
    return Part(vstack(features, format="csr"), columns[TARGET], columns[WEIGHT], columns[STOP].astype(bool))


def _sorted_columns(batches: Iterable[pa.RecordBatch], words: list[str]) -> dict[str, NDArray[Any]]:
    """All rows of a task in one order, in whatever order they came: LightGBM rounds its sums."""
    names = [*words, PLACE, TARGET, WEIGHT, STOP]
    if not (some := list(batches)):
        return {name: np.zeros(0, dtype=np.int64) for name in names}
    table = pa.Table.from_batches(some)
    columns = {name: table[name].to_numpy() for name in names}
    order = np.lexsort(list(columns.values()))
    return {name: column[order] for name, column in columns.items()}


@contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    """End the process if the block does not end: who waits for a peer hears of no lost driver."""
    end = threading.Timer(seconds, os._exit, (TransientError.exit_code,))
    end.daemon = True
    end.start()
    try:
        yield
    finally:
        end.cancel()

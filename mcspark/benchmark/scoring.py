"""Scoring by the additive form beside SynapseML's own ``transform``, with one and the same model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mcspark.benchmark.clock import Clock
from mcspark.benchmark.features import with_features
from mcspark.benchmark.work import Work
from mcspark.core.model.lightgbm_text import parse_trees
from mcspark.engine.choice import engine_of
from mcspark.ml.cells.groups import with_categories
from mcspark.ml.cells.working import WORKING
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.ml.scoring import with_calibrated
from mcspark.runtime.files.files import Files

TRANSFORM_ROWS = 50_000
"""SynapseML scores no more rows than this: its rate does not depend on their number."""

ADDITIVE_ROWS = 1_000_000
_SAME = 1e-12


@dataclass(frozen=True)
class ScoringRates:
    """Rows a second, and whether both ways agree with what the job has written.

    Parameters
    ----------
    additive, transform : float
    trees : int
    largest_difference : float
        Between a calibrated score that the job has written and SynapseML's, clipped to [0, 1].
    """

    additive: float
    transform: float
    trees: int
    largest_difference: float

    @property
    def equal(self) -> bool:
        """Whether no score differs by more than rounding explains."""
        return self.largest_difference <= _SAME


def compare_scoring(work: Work, clock: Clock, repeats: int) -> ScoringRates:
    """Measure both ways on rows that are in memory, features made beforehand, interleaved.

    Parameters
    ----------
    work : Work
        After :meth:`Work.calibrate`.
    clock : Clock
    repeats : int
    """
    model = MulticalibratorModel.load(work.model)
    text = Files(work.spark, work.model).read_text(f"{work.model}/trees_0.txt", limit=2**30)
    booster = _booster(text)
    rows = work.rows
    groups = model.fitted.names
    some = _some(rows, work.population.rows, TRANSFORM_ROWS)
    many = with_categories(_some(rows, work.population.rows, ADDITIVE_ROWS), model.fitted.families)
    many = many.withColumnRenamed("score", WORKING.score)
    with _Kept(with_features(some, groups)) as featured, _Kept(many) as categorised:
        _run(_additive(categorised, model))  # once uncounted: Python's workers start
        for _ in range(repeats):
            clock.take("additive", lambda: _run(_additive(categorised, model)))
            clock.take("transform", lambda: _run(booster.transform(featured)))
        raw = F.col("score") + F.col("prediction")
        theirs = F.greatest(F.lit(0.0), F.least(F.lit(1.0), raw))
        worst = booster.transform(featured).agg(F.max(F.abs(theirs - F.col("calibrated_score")))).first()
        assert worst is not None
        return ScoringRates(
            categorised.count() / clock.seconds("additive"),
            featured.count() / clock.seconds("transform"),
            len(parse_trees(text)),
            float(worst[0]),
        )


def _booster(text: str) -> Any:
    from synapse.ml.lightgbm import LightGBMRegressionModel  # noqa: PLC0415  (scoring needs no SynapseML)

    model = LightGBMRegressionModel.loadNativeModelFromString(text)
    # The default would use the first hundred trees.
    return model.setNumIterations(-1).setFeaturesCol("features").setPredictionCol("prediction")


def _additive(rows: DataFrame, model: MulticalibratorModel) -> DataFrame:
    return with_calibrated(rows, WORKING.score, model.scoring, "again")


def _run(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _some(rows: DataFrame, total: int, wanted: int) -> DataFrame:
    """About this many of the rows, the same ones every time."""
    if total <= wanted:
        return rows
    place = F.pmod(F.xxhash64("SERIALNO", "SPORDER", F.lit(6).cast("long")), F.lit(2**30))
    return rows.where(place < int(2**30 * wanted / total))


class _Kept:
    """A table held in memory within a block."""

    def __init__(self, frame: DataFrame) -> None:
        # Spark would keep a table as small as this in one partition, for one core to read.
        cores = engine_of(frame.sparkSession).cores()
        self._frame = frame.repartition(cores).persist(StorageLevel.MEMORY_AND_DISK)

    def __enter__(self) -> DataFrame:
        self._frame.count()
        return self._frame

    def __exit__(self, *_: object) -> None:
        self._frame.unpersist()

"""From PUMS person files to a scored table and an attribute table, ready to be calibrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import structlog
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from mcspark.acs.base_predictor import LinearPredictor, fit_regression, fit_svm
from mcspark.acs.columns import (
    COLUMNS,
    FURTHER_ATTRIBUTES,
    GROUP_ATTRIBUTES,
    KEY,
    WEIGHT,
    Kind,
)
from mcspark.acs.persons import read_persons
from mcspark.acs.publish import publish
from mcspark.acs.tasks import Task, task_named
from mcspark.engine.literal import literal_reader
from mcspark.errors import ConfigurationError, ContractError

log = structlog.get_logger(__name__)

LARGEST_TRAINING_SHARE = 0.5
"""At most this share of the rows trains the base predictor, however many are asked for."""

FEWEST_ROWS = 100
"""Fewer rows than this are not worth a base predictor."""


@dataclass(frozen=True)
class Rows:
    """Row counts: ``in_`` = read, ``filtered`` = in the task = ``train`` + ``scored``."""

    in_: int
    filtered: int
    train: int
    scored: int


@dataclass(frozen=True)
class Prepared:
    """What was prepared: counts, the base predictor, and the paths of the two tables."""

    task: str
    rows: Rows
    predictor: LinearPredictor
    paths: dict[str, str]

    def summary(self) -> dict[str, Any]:
        """Plain JSON form, the last line that the job prints."""
        rows = {name.rstrip("_"): count for name, count in asdict(self.rows).items()}
        return {
            "status": "ok",
            "task": self.task,
            "rows": rows,
            "features": list(self.predictor.features),
            "paths": self.paths,
        }


def prepare(
    spark: SparkSession, inputs: Sequence[str], *, task: str, output: str, train: int = 50_000, seed: int = 42
) -> Prepared:
    """Filter, label and score ACS persons, and write ``output/scored`` and ``output/attributes``.

    The rows that train the base predictor are those whose key hashes lowest, so the choice does not depend
    on the order or partitioning of the input; they are not written.

    Parameters
    ----------
    spark : SparkSession
    inputs : sequence of str
        PUMS person files, CSV and Parquet.
    task : {"income", "income_class", "travel"}
    output : str
        Folder; the tables in it are replaced once the new ones are whole.
    train : int
        Rows for the base predictor; at most half of those in the task.
    seed : int
        Chooses the training rows.

    Raises
    ------
    ConfigurationError
        Unknown task, impossible ``train``, missing file, or an output that cannot be written.
    ContractError
        The files break their contract (see :func:`~mcspark.acs.persons.read_persons`), or too few rows or
        only one class pass the filter.
    """
    chosen = task_named(task)
    if train < FEWEST_ROWS // 2:
        raise ConfigurationError(f"train is {train} and must be at least {FEWEST_ROWS // 2}")
    required = (*KEY, WEIGHT, *GROUP_ATTRIBUTES, *chosen.needs)
    persons = read_persons(spark, inputs, required, (*FURTHER_ATTRIBUTES, *chosen.features))
    population = persons.frame.where(chosen.filter).withColumn("label", sf.expr(chosen.label)).persist()
    try:
        features, filtered = _usable_features(population, chosen, persons.absent)
        wanted = min(train, int(filtered * LARGEST_TRAINING_SHARE))
        if wanted < train:
            log.info("training_rows_limited", asked=train, taken=wanted, filtered=filtered)
        trains = _key_hash(seed) <= _lowest_hashes(population, wanted, seed)
        training = population.where(trains).persist()
        fit = fit_svm if chosen.predictor == "svm" else fit_regression
        try:
            trained = training.count()
            predictor = fit(training, features)
        finally:
            training.unpersist()
        log.info("base_predictor", features=features, coefficients=predictor.coefficients)
        rest = population.where(~trains)
        paths = publish(spark, output, _tables(rest, predictor))
    finally:
        population.unpersist()
    scored = literal_reader(spark).parquet(paths["scored"]).count()
    if scored != filtered - trained:
        raise RuntimeError(f"{filtered - trained} rows were to be written and {scored} were")
    return Prepared(task, Rows(persons.rows, filtered, trained, scored), predictor, paths)


def _tables(rest: DataFrame, predictor: LinearPredictor) -> dict[str, DataFrame]:
    attributes = [c for c in (*GROUP_ATTRIBUTES, *FURTHER_ATTRIBUTES) if c in rest.columns]
    return {
        "scored": rest.select(*KEY, predictor.score().alias("score"), "label", WEIGHT),
        "attributes": rest.select(*KEY, *attributes),
    }


def _usable_features(
    population: DataFrame, task: Task, absent: Mapping[str, str]
) -> tuple[tuple[str, ...], int]:
    """Features that a linear model can use, and the number of rows; the others are logged and left out."""
    reasons = {name: absent[name] for name in task.features if name in absent}
    for name in task.features:
        if COLUMNS[name].kind is Kind.code:
            reasons.setdefault(name, "it is an identifier, not a number")
    candidates = [name for name in task.features if name not in reasons]
    seen = population.agg(
        sf.count(sf.lit(1)).alias("rows"),
        sf.countDistinct("label").alias("labels"),
        *(sf.count(name).alias(f"count_{name}") for name in candidates),
        *((sf.max(name) > sf.min(name)).alias(f"varies_{name}") for name in candidates),
    ).first()
    assert seen is not None  # an aggregate without keys has one row
    rows = int(seen["rows"])
    if rows < FEWEST_ROWS:
        raise ContractError(
            f"{rows} rows pass the filter of task {task.name} ({task.filter}) and at least {FEWEST_ROWS} "
            "are needed; give more files"
        )
    if seen["labels"] < 2:
        raise ContractError(
            f"all {rows} rows in task {task.name} have one label: there is nothing to predict"
        )
    for name in candidates:
        if seen[f"count_{name}"] < rows:
            reasons[name] = f"{rows - seen[f'count_{name}']} of {rows} rows have none"
        elif not seen[f"varies_{name}"]:
            reasons[name] = "it is the same in all rows"
    if reasons:
        log.info("features_left_out", task=task.name, reasons=reasons)
    features = tuple(name for name in candidates if name not in reasons)
    if not features:
        raise ContractError(f"no feature of task {task.name} is usable: {reasons}")
    return features, rows


def _key_hash(seed: int) -> Column:
    return sf.xxhash64(*KEY, sf.lit(seed).cast("bigint"))


def _lowest_hashes(population: DataFrame, count: int, seed: int) -> int:
    """The hash up to which ``count`` rows lie."""
    lowest = population.select(_key_hash(seed).alias("hash")).orderBy("hash").limit(count)
    last = lowest.agg(sf.max("hash")).first()
    assert last is not None  # an aggregate without keys has one row
    return int(last[0])

"""The rows that are measured on: real ACS records repeated by their person weights, or synthetic ones."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from mcspark.acs.columns import GROUPS, KEY, WEIGHT
from mcspark.acs.prepare import prepare
from mcspark.acs.synthetic import write_synthetic
from mcspark.config import Config, load_config
from mcspark.engine.literal import literal_reader
from mcspark.runtime.files.files import Files

TASK = "income_class"

ATTRIBUTES = ("RAC1P", "SEX", "AGEP", "SCHL", "OCCP")
"""The attribute columns that the groups read; the attribute table has no others beside the key."""

JITTER = 0.01
"""Copies of one record differ by up to this much in their scores."""

_ROWS_A_FILE = 500_000


@dataclass(frozen=True)
class Population:
    """A scored table and its attribute table on disk.

    Parameters
    ----------
    folder : str
    rows : int
    """

    folder: str
    rows: int

    @property
    def scored(self) -> str:
        """Path of the scored table: key, score, label."""
        return f"{self.folder}/scored"

    @property
    def attributes(self) -> str:
        """Path of the attribute table: key and :data:`ATTRIBUTES`."""
        return f"{self.folder}/attributes"

    def configuration(self, trees: int, output: str = "calibrated") -> Config:
        """The configuration of the ready file for the ACS task, with this many trees at most."""
        settings = {
            "scored.path": self.scored,
            "scored.key": f"[{', '.join(KEY)}]",
            "attributes": f"[{{path: {self.attributes}, key: [{', '.join(KEY)}]}}]",
            "groups.columns": GROUPS,
            "calibrator.recipe": "paper",  # as many trees as the other ways to train grow
            "calibrator.max_trees": str(trees),
            "output.path": f"{self.folder}/{output}",
            "model.path": f"{self.folder}/model",
            "report.path": f"{self.folder}/report.html",
        }
        # Not the environment: the benchmark is the same everywhere.
        return load_config(None, [f"{key}={value}" for key, value in settings.items()], {})


def make_population(
    spark: SparkSession, rows: int, sources: Sequence[str], folder: str
) -> tuple[Population, Population]:
    """Write the population of ``rows`` rows, and a tenth of it; what is there already is used again.

    Parameters
    ----------
    spark : SparkSession
    rows : int
    sources : sequence of str
        ACS person files; none for the synthetic population.
    folder : str
    """
    files = Files(spark, folder)
    whole, tenth = f"{folder}/whole", f"{folder}/tenth"
    if not files.exists(f"{whole}/attributes/_SUCCESS"):
        if sources:
            scored, attributes = _expanded(spark, rows, sources, f"{folder}/persons")
        else:
            paths = write_synthetic(spark, f"{folder}/persons", rows)
            scored, attributes = (
                literal_reader(spark).parquet(paths[name]) for name in ("scored", "attributes")
            )
        _write(scored.select(*KEY, "score", "label"), f"{whole}/scored", rows, seed=1)
        _write(attributes.select(*KEY, *ATTRIBUTES), f"{whole}/attributes", rows, seed=2)
    if not files.exists(f"{tenth}/attributes/_SUCCESS"):
        for name in ("scored", "attributes"):
            part = literal_reader(spark).parquet(f"{whole}/{name}").where(F.pmod(_hash(3), F.lit(10)) == 0)
            part = part.coalesce(max(2, rows // 10 // _ROWS_A_FILE))
            part.write.mode("overwrite").parquet(f"{tenth}/{name}")
    return _counted(spark, whole), _counted(spark, tenth)


def _counted(spark: SparkSession, folder: str) -> Population:
    return Population(folder, literal_reader(spark).parquet(f"{folder}/scored").count())


def population_name(rows: int, sources: Sequence[str]) -> str:
    """Name of the folder of a population."""
    if not sources:
        return f"synthetic-{rows}"
    listed = "\n".join(sorted(str(Path(source).resolve()) for source in sources))
    return f"acs-{rows}-{hashlib.sha256(listed.encode()).hexdigest()[:8]}"


def _expanded(
    spark: SparkSession, rows: int, sources: Sequence[str], folder: str
) -> tuple[DataFrame, DataFrame]:
    """Each record as often as its share of the person weight says, under keys of their own."""
    paths = prepare(spark, list(sources), task=TASK, output=folder).paths
    persons = literal_reader(spark).parquet(paths["scored"])
    total = persons.agg(F.sum(WEIGHT)).first()
    assert total is not None
    before = Window.orderBy(*KEY).rowsBetween(Window.unboundedPreceding, -1)
    # Running totals of whole numbers, so that the copies add up to the wanted number exactly.
    first = F.coalesce(F.sum(WEIGHT).over(before), F.lit(0)).cast("long")
    drawn = persons.withColumn("first", first).select(
        *KEY,
        "score",
        "label",
        F.expr(f"`first` * {rows} div {total[0]}").alias("begin"),
        F.expr(f"(`first` + {WEIGHT}) * {rows} div {total[0]}").alias("end"),
    )
    drawn = drawn.where("end > begin").withColumn("copy", F.explode(F.expr("sequence(begin, end - 1)")))
    attributes = literal_reader(spark).parquet(paths["attributes"])
    copies = drawn.join(attributes.select(*KEY, *ATTRIBUTES), list(KEY), "left")
    unique = F.concat_ws("-", F.col(KEY[0]), F.col("copy").cast("string"))
    step = (_uniform(4) + _uniform(5) - 1) * JITTER
    moved = F.greatest(F.lit(0.0), F.least(F.lit(1.0), F.col("score") + step))
    # The key first: the jitter is a hash of it.
    copies = copies.withColumn(KEY[0], unique).withColumn("score", moved)
    return copies, copies


def _hash(seed: int) -> Column:
    return F.xxhash64(*KEY, F.lit(seed).cast("long"))


def _uniform(seed: int) -> Column:
    return F.shiftrightunsigned(_hash(seed), 11) * F.lit(2.0**-53)


def _write(table: DataFrame, path: str, rows: int, seed: int) -> None:
    """Write the rows in an order of no meaning, another one for each table: no join gets one for free."""
    shuffled = table.withColumn("__order", _hash(seed))
    shuffled = shuffled.repartition(max(2, rows // _ROWS_A_FILE), "__order").sortWithinPartitions("__order")
    shuffled.drop("__order").write.mode("overwrite").parquet(path)

"""The things that are measured: the floor, the scan, and the jobs themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mcspark.acs.columns import KEY
from mcspark.benchmark.population import ATTRIBUTES, Population
from mcspark.config import Config
from mcspark.core.metrics.metrics import Metrics
from mcspark.engine.literal import literal_reader
from mcspark.ml.cells.cells import make_cells
from mcspark.ml.cells.fixed_point import FixedPoint
from mcspark.ml.cells.groups import GroupSet, with_categories
from mcspark.ml.cells.working import WORKING
from mcspark.pipelines.audit import audit
from mcspark.pipelines.calibrate import calibrate
from mcspark.pipelines.judging.measuring import measured, measuring_bins
from mcspark.pipelines.run import Run, new_run_id
from mcspark.pipelines.score import score

Job = Callable[[Run], Mapping[str, Any]]


@dataclass
class Work:
    """Everything that is done to one population.

    Parameters
    ----------
    spark : SparkSession
    population : Population
    trees : int
        Most trees of a fit.
    stages : dict of str to dict
        Seconds of the stages of the latest run of each job.
    """

    spark: SparkSession
    population: Population
    trees: int
    stages: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """Path of the model that :meth:`calibrate` saves."""
        return f"{self.population.folder}/model"

    def floor(self) -> None:
        """Read both tables, join them, write the result: what no job over them can do without."""
        scored = literal_reader(self.spark).parquet(self.population.scored)
        attributes = literal_reader(self.spark).parquet(self.population.attributes)
        scored.join(attributes, list(KEY), "left").write.mode("overwrite").parquet(self.joined)

    @property
    def joined(self) -> str:
        """Path of what :meth:`floor` writes."""
        return f"{self.population.folder}/joined"

    @property
    def calibrated(self) -> str:
        """Path of what :meth:`calibrate` writes."""
        return f"{self.population.folder}/calibrated"

    def scan(self) -> None:
        """Read the joined table and sum each column that an audit reads."""
        names = ("score", "label", *ATTRIBUTES)
        literal_reader(self.spark).parquet(self.joined).agg(*(F.sum(name) for name in names)).collect()

    def audit_rows(self) -> Metrics:
        """What an audit does after its checks and its join, on the joined table: every grid and group."""
        run = self._run("audit", self.configuration("audited"))
        plan = GroupSet.from_config(run.config.groups)
        frame = with_categories(literal_reader(self.spark).parquet(self.joined), plan.families)
        frame = frame.withColumnsRenamed({"score": WORKING.score, "label": WORKING.label})
        names = type(WORKING)(WORKING.score, WORKING.label)
        with make_cells(
            frame, names, plan.families, measuring_bins(run), FixedPoint.of(frame, names.weight)
        ) as table:
            return measured(run, table.collect_chosen(plan)[0])

    def calibrate(self) -> Mapping[str, Any]:
        """The whole job, with its checks."""
        return self._job("calibrate", calibrate, self.configuration("calibrated"))

    def score(self) -> Mapping[str, Any]:
        """The whole job, with the model that :meth:`calibrate` has saved."""
        return self._job("score", score, self.configuration("rescored"))

    def audit(self) -> Mapping[str, Any]:
        """The whole job, on the base score."""
        return self._job("audit", audit, self.configuration("audited"))

    def audit_calibrated(self) -> Mapping[str, Any]:
        """The whole job, on the output of :meth:`calibrate`."""
        config = self.configuration("audited")
        scored = config.scored.model_copy(update={"path": self.calibrated, "score": "calibrated_score"})
        return self._job("audit", audit, config.model_copy(update={"scored": scored}))

    def configuration(self, output: str) -> Config:
        """The configuration that the jobs are given."""
        return self.population.configuration(self.trees, output)

    @cached_property
    def rows(self) -> DataFrame:
        """The calibrated rows beside their attributes, joined anew and written once: they are read often."""
        path = f"{self.population.folder}/judged"
        attributes = literal_reader(self.spark).parquet(self.population.attributes)
        rows = literal_reader(self.spark).parquet(self.calibrated).join(attributes, list(KEY), "left")
        rows.write.mode("overwrite").parquet(path)
        return literal_reader(self.spark).parquet(path)

    def _job(self, name: str, job: Job, config: Config) -> Mapping[str, Any]:
        run = self._run(name, config)
        summary = job(run)
        self.stages[name] = dict(run.seconds)
        return summary

    def _run(self, name: str, config: Config) -> Run:
        return Run(name, new_run_id(name), config, self.spark)

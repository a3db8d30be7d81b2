"""The whole benchmark: make the rows, measure in turns, check, and set the figures side by side."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcspark.acs.persons import check_inputs
from mcspark.benchmark.checks import check_metrics, check_rows, same_errors
from mcspark.benchmark.clock import Clock, Memory
from mcspark.benchmark.population import Population, make_population, population_name
from mcspark.benchmark.quality import compare_quality, same_quality
from mcspark.benchmark.scoring import compare_scoring
from mcspark.benchmark.table import render
from mcspark.benchmark.training import Rows, Training
from mcspark.benchmark.work import Work
from mcspark.config import Config
from mcspark.errors import McsparkError
from mcspark.pipelines.run import Run
from mcspark.runtime.local import spark_is_configured

MOST_ROWS_IN_MEMORY = 1_100_000
"""Row-level training is measured on populations up to this size, and on a tenth of larger ones."""

QUALITY_ROWS = 200_000


@dataclass(frozen=True)
class Options:
    """What to measure.

    Parameters
    ----------
    rows : int
    repeats : int
        Runs of each thing, in turns; medians count.
    trees : int
        Most trees of a fit, and their number where ways to train are compared.
    folds : int
        Folds of the comparison of quality; 0 leaves it out.
    sources : tuple of str
        ACS person files; none for the synthetic population.
    workdir : str
    """

    rows: int
    repeats: int
    trees: int
    folds: int
    sources: tuple[str, ...]
    workdir: str

    @staticmethod
    def found(given: Sequence[str], environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
        """The files to expand: those given, else the ACS files of the shared folder, else none."""
        if given:
            return tuple(given)
        shared = Path(environ.get("MCSPARK_SHARED", "../shared"))
        return tuple(str(path) for path in sorted((shared / "data" / "acs2024").glob("*.parquet")))

    @property
    def folder(self) -> str:
        """Folder of the population; those of other sizes and sources stand beside it."""
        return f"{self.workdir.rstrip('/')}/{population_name(self.rows, self.sources)}"

    def configuration(self) -> Config:
        """The configuration of the jobs that are measured."""
        if self.sources:
            check_inputs(self.sources)
        return Population(f"{self.folder}/whole", self.rows).configuration(self.trees)


def benchmark(run: Run, options: Options) -> dict[str, Any]:
    """Measure everything; returns the result line."""
    spark = run.spark
    with run.stage("population", "make the rows"):
        whole, tenth = make_population(spark, options.rows, options.sources, options.folder)
    clock, memory = Clock(spark), Memory(spark)
    large, small = Work(spark, whole, options.trees), Work(spark, tenth, options.trees)
    with run.stage("warm-up", "run everything once on a tenth of the rows"):
        _jobs(small, Clock(spark), 1)
    memory.reset()
    with run.stage("jobs", "measure the jobs"):
        summaries = _jobs(large, clock, options.repeats)
    heap = memory.heap()
    with run.stage("checks", "check the jobs' results"):
        summary = summaries["calibrate"]
        checks = _checks(large, summaries)
    with run.stage("scoring", "measure the additive form"):
        rates = compare_scoring(large, clock, options.repeats)
    checks["scores_equal"] = rates.equal
    with run.stage("training", "measure the training"):
        cells_over, in_memory = _training(large, small, clock, options.repeats)
    quality = []
    if options.folds:
        with run.stage("quality", "compare models trained on cells and on rows"):
            quality = compare_quality(spark, _some(in_memory), options.folds)
            checks |= same_quality(quality)
    ratio = _Ratios(clock)
    return {
        "rows": whole.rows,
        "calibrate_over_floor": ratio("calibrate", "floor"),
        "score_over_floor": ratio("score", "floor"),
        "audit_over_scan": ratio("audit_rows", "scan"),
        "additive_over_transform": round(rates.additive / rates.transform, 2),
        "cells_over_lightgbm": cells_over,
        "fit_growth_10x": ratio("fit", "fit_tenth"),
        "driver_heap_gib": round(heap, 3),
        "checks": checks,
        "audit_over_floor": ratio("audit", "floor"),
        "fit_over_floor": ratio("fit", "floor"),
        "making_and_fitting_cells_over_lightgbm": ratio(_fit_of(large), "fit_lightgbm_rows"),
        "cells_over_synapse_rows": ratio("fit_cells", "fit_synapse_rows"),
        "rows_per_second": {"additive": round(rates.additive), "transform": round(rates.transform)},
        "trees": rates.trees,
        "cells": summary["cells"],
        "signatures": summary["signatures"],
        "groups": summary["groups"],
        "repeats": options.repeats,
        "memory_gib": {
            "driver_heap": round(heap, 3),
            "driver_python": round(memory.driver_python(), 3),
            "largest_worker": memory.workers(),
        },
        "costs": clock.table(),
        "stages": {**large.stages, "benchmark": run.seconds},
        "metrics": summary["metrics"],
        "quality": [q.plain() for q in quality],
    }


def body(options: Options, json_file: str | None) -> Callable[[Run], dict[str, Any]]:
    """The job for :func:`mcspark.pipelines.job.run_job`: measure, show, and refuse a fast wrong answer.

    Parameters
    ----------
    options : Options
    json_file : str, optional
        Where the result goes, failed checks included.
    """

    def measure(run: Run) -> dict[str, Any]:
        result = benchmark(run, options)
        print(render(result), file=sys.stderr, flush=True)  # noqa: T201
        if json_file:
            Path(json_file).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        failed = [name for name, fine in result["checks"].items() if not fine]
        if failed:
            raise McsparkError(f"the benchmark's checks failed: {', '.join(failed)}")
        return result

    return measure


def settings() -> dict[str, str]:
    """Spark's settings where nobody has made any: the driver is to do with this little."""
    return {} if spark_is_configured() else {"spark.driver.memory": "2g"}


def _jobs(work: Work, clock: Clock, repeats: int) -> dict[str, Mapping[str, Any]]:
    """Run everything in turns; returns the last summary of each job."""
    summaries = {}
    for _ in range(repeats):
        clock.take("floor", work.floor)
        summaries["calibrate"] = clock.take("calibrate", work.calibrate)
        summaries["score"] = clock.take("score", work.score)
        clock.take("scan", work.scan)
        clock.take("audit_rows", work.audit_rows)
        summaries["audit"] = clock.take("audit", work.audit)
    return summaries


def _checks(work: Work, summaries: Mapping[str, Mapping[str, Any]]) -> dict[str, bool]:
    summary, audited, rows = summaries["calibrate"], summaries["audit"], work.rows
    again = work.audit_calibrated()
    return {
        "rows_add_up": check_rows(work.population.rows, rows, summary, summaries["score"], audited),
        "audit_equals_before": same_errors(audited["metrics"]["before"], summary["metrics"]["before"]),
        "audit_equals_after": same_errors(again["metrics"]["before"], summary["metrics"]["after"]),
        **check_metrics(rows, summary),
    }


def _training(large: Work, small: Work, clock: Clock, repeats: int) -> tuple[float, Rows]:
    every, tenth = Training(large), Training(small)
    compared = every if large.population.rows <= MOST_ROWS_IN_MEMORY else tenth
    every.prepare()
    tenth.prepare()
    cells, fitted = compared.cells()
    groups = fitted.names
    rows = compared.in_memory(groups)
    for _ in range(repeats):
        clock.take("fit", every.on_cells)
        clock.take("fit_tenth", tenth.on_cells)
        clock.take("fit_cells", lambda: compared.from_cells(cells, fitted))
        clock.take("fit_lightgbm_rows", lambda: compared.by_lightgbm(rows))
    featured = compared.featured(groups)
    clock.take("fit_synapse_rows", lambda: compared.by_synapse(featured))
    featured.unpersist()
    return _Ratios(clock)("fit_cells", "fit_lightgbm_rows"), rows


def _fit_of(large: Work) -> str:
    return "fit" if large.population.rows <= MOST_ROWS_IN_MEMORY else "fit_tenth"


def _some(rows: Rows) -> Rows:
    take = slice(0, QUALITY_ROWS)
    return Rows(rows.score[take], rows.label[take], rows.role[take], rows.membership[take], rows.groups)


class _Ratios:
    """Ratios of medians, rounded."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __call__(self, one: str, other: str) -> float:
        return round(self._clock.seconds(one) / self._clock.seconds(other), 3)

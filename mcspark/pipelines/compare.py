"""The paper's experiment on any scored table: every method, every grid, repeated partitions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import structlog
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from mcspark.config import Calibrator, CompareOutput, Config, required
from mcspark.core.baselines.method import Setting
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import MAX_DEPTH, ScoreBins, base_levels
from mcspark.core.training.sweep import BUCKETS, METHODS, PAPER_GRIDS, Sweep
from mcspark.data.leases.lease import Lease
from mcspark.data.publishing.sink import Publication, Target
from mcspark.errors import ContractError
from mcspark.ml.cells.cells import choose_bins, make_cells
from mcspark.ml.cells.fixed_point import FixedPoint
from mcspark.ml.cells.groups import GroupSet
from mcspark.ml.cells.working import WORKING
from mcspark.ml.methods import given, recipe_of, settings_of, tree_settings
from mcspark.ml.split import place
from mcspark.ml.training import driver_training
from mcspark.ml.training.training import TreeTrainer
from mcspark.ml.training.tuning import Choice, Engine, ResultRow, digest, run_sweep, workers
from mcspark.pipelines.comparison_page import figure, html, leads, markdown, summary_table
from mcspark.pipelines.judging.measuring import driver_cells
from mcspark.pipelines.publishing.record import stage_manifest
from mcspark.pipelines.reading.inputs import read_inputs
from mcspark.pipelines.reading.rows import Inputs
from mcspark.pipelines.reading.workspace import Workspace
from mcspark.pipelines.run import Run
from mcspark.runtime.columns import column
from mcspark.runtime.files.files import Files, beside, leaf

log = structlog.get_logger(__name__)

RESULTS_SCHEMA = StructType([
    StructField("task", StringType()),
    StructField("method", StringType()),
    StructField("m", LongType()),
    StructField("fold", LongType()),
    StructField("metric", StringType()),
    StructField("value", DoubleType()),
])  # fmt: skip
"""Columns of ``results.parquet``."""

_PAGES = ("compare.md", "figure.svg", "compare.html")
_KNOWN = re.compile("Comparison of calibrators|<svg[^>]*>.*Matplotlib", re.DOTALL)
"""Found in all of :data:`_PAGES`."""

_FINER = 3
"""How often the test rows' score bins are halved: a calibrator moves a cell as a whole."""

_BUCKET = "__bucket"


def compare(run: Run) -> dict[str, Any]:
    """Run the job; returns the summary line.

    Finished trials are kept in a hidden folder beside the output, so a job that was interrupted goes on.
    """
    output: CompareOutput = required(run.config.compare.output, "compare.output")
    files = Files(run.spark, output.path)
    kept = _Folder(files, beside(files.qualify(output.path), f".{leaf(output.path)}.trials"))
    trees = _engine(run)
    rows: list[ResultRow] = []
    choices: dict[str, list[Choice]] = {}
    with (
        Lease(run.spark, output.path, run.run_id) as lease,
        Publication(run.spark, run.run_id) as publication,
    ):
        results = Target(f"{output.path.rstrip('/')}/results.parquet")
        publication.claim(results, "results")
        for name in _PAGES:
            publication.claim_text(f"{output.path.rstrip('/')}/{name}", _KNOWN)
        for name, config in tasks(run.config).items():
            inner = Run(run.job, run.run_id, config, run.spark, run.seconds)
            with run.stage(f"cells of {name}", f"sum the rows of {name} to cells"):
                sweep = _sweep(inner, output.path)
            log.info("cells made", task=name, cells=len(sweep.learning), test_cells=len(sweep.test))
            grids = grids_of(config)
            trials = kept.folder(digest(sweep, grids, trees.name))
            with (
                run.stage(f"sweep of {name}", f"compare the methods on {name}"),
                workers(sweep, trees) as pool,
            ):
                found, choices[name] = run_sweep(name, sweep, grids, config.compare.partitions, pool, trials)
            rows += found
        with run.stage("write", "write the results"):
            publication.stage_rows(results, _records(rows), RESULTS_SCHEMA, kind="results")
            picture = figure(rows)
            texts = (markdown(rows, choices, trees.name), picture, html(rows, choices, trees.name, picture))
            pages = dict(zip(_PAGES, texts, strict=True))
            for name, text in pages.items():
                publication.stage_text(f"{output.path.rstrip('/')}/{name}", text, _KNOWN)
        summary: dict[str, Any] = {
            "status": "ok",
            "run_id": run.run_id,
            "engine": trees.name,
            "partitions": run.config.compare.partitions,
            "lead": leads(rows),
            "results": summary_table(rows),
            "paths": {"results": results.leaf, **{n: f"{output.path.rstrip('/')}/{n}" for n in pages}},
        }
        manifest = stage_manifest(run, publication, output.path, summary)
        lease.check()
        publication.publish()
    return {**summary, "paths": {**summary["paths"], "manifest": manifest}}


def tasks(config: Config) -> dict[str, Config]:
    """The configuration of each task by its name, the one of the top level first."""
    found = {config.compare.task: config}
    for task in config.compare.tasks:
        own = {
            "scored": task.scored,
            "attributes": task.attributes,
            "labels": task.labels,
            "groups": task.groups or config.groups,
        }
        found[task.name] = config.model_copy(update=own)
    return found


def grids_of(config: Config) -> dict[str, tuple[Setting, ...]]:
    """The settings to choose from for each method: the paper's, or the calibrator section as it stands."""
    methods, c = config.compare.methods, config.calibrator
    if config.compare.sweep == "paper":
        return {method: PAPER_GRIDS[method] for method in methods}
    own: dict[str, tuple[Setting, ...]] = {
        "none": ((),),
        **{
            name: method.own({"early_stopping": config.split.early_stopping, **settings_of(c, method.name)})
            for name, method in METHODS.items()
        },
        "trees": (_trees_of(c),),
    }
    return {method: own[method] for method in methods}


def _trees_of(c: Calibrator) -> Setting:
    """The calibrator section's settings; none where the recipe chooses them on each partition."""
    if recipe_of(c) == "auto":
        return ()
    return ("learning_rate", c.learning_rate), ("feature_fraction", c.feature_fraction)


def engine(config: Config) -> str | None:
    """What is to train the trees of the comparison; None where there are none."""
    if "trees" not in config.compare.methods:
        return None
    return "synapseml" if config.compare.engine == "synapseml" else "lightgbm"


def _engine(run: Run) -> Engine:
    if engine(run.config) != "synapseml":
        return Engine(driver_training.engine(), driver_training.DriverTrainer(), in_process=True)
    trainer = TreeTrainer(run.spark, run.config.calibrator.timeout_seconds, "synapseml")
    return Engine("SynapseML", trainer, in_process=False)


def _sweep(run: Run, output: str) -> Sweep:
    config, c = run.config, run.config.calibrator
    plan = GroupSet.from_config(config.groups)
    with Workspace(run.spark, output, run.run_id) as workspace:
        inputs = read_inputs(run, plan.families, plan.columns, needs_label=True)
        inputs = inputs.with_frame(workspace.keep(inputs.frame, "joined"))
        inputs.refuse_unmatched()
        learning, test = _cells(run, inputs, plan)
    return Sweep(
        learning,
        test,
        levels=config.evaluation.levels,
        seed=config.split.seed,
        early_stopping=config.split.early_stopping,
        trees=tree_settings(c),
        rounds=c.rounds,
        recipe=recipe_of(c),
        given=given(c),
        settings={name: settings_of(c, method.name) for name, method in METHODS.items()},
        min_rows=config.evaluation.min_group_rows,
    )


def _cells(run: Run, inputs: Inputs, plan: GroupSet) -> tuple[Cells, Cells]:
    """Cells of the rows that are not test, with their bucket for a role, and finer ones of the test rows."""
    config, limit = run.config, driver_cells(run)
    split, test = column(str(WORKING.split)), Role.test.name
    # Another seed than any split's: the bucket of a row has nothing to do with its place in the split.
    u = place(config.scored.key, -1 - config.split.seed)
    bucket = F.concat(F.lit("bucket_"), F.floor(u * F.lit(BUCKETS)).cast("string"))
    labelled = inputs.labelled.withColumn(_BUCKET, F.when(split == test, F.lit(test)).otherwise(bucket))
    names = replace(WORKING, weight=inputs.weight, split=_BUCKET)
    roles = [*(f"bucket_{i}" for i in range(BUCKETS)), test]
    scale, count = FixedPoint.counted(labelled, inputs.weight)
    rows = limit.rows(count)
    base = base_levels(config.evaluation.levels)
    rest = labelled.where(split != test)
    bins = choose_bins(rest, names, base, config.calibrator.score_bins, scale)
    with make_cells(labelled, names, plan.families, bins, scale, roles, rows) as table:
        cells, groups = table.collect_chosen(plan, limit.most)
    finer = ScoreBins(base, tuple(min(depth + _FINER, MAX_DEPTH) for depth in bins.depth))
    held_out = replace(names, split=None)
    with make_cells(labelled.where(split == test), held_out, plan.families, finer, scale, rows=rows) as table:
        tested = table.collect(groups, limit.most)
    learning = cells.take(cells.role < BUCKETS)
    if not (learning.weight.sum() > 0 and tested.weight.sum() > 0):
        raise ContractError(
            f"{inputs.source}: a comparison needs labelled rows with weight in and outside the test split; "
            "check split.test, split.column and the labels"
        )
    return learning, tested


def _records(rows: list[ResultRow]) -> list[tuple[Any, ...]]:
    return [
        (r.task, r.method, r.m, r.fold, r.metric, None if r.value is None else float(r.value)) for r in rows
    ]


class _Folder:
    """Texts by name in one folder; see :class:`mcspark.ml.training.tuning.Store`."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path

    def folder(self, name: str) -> _Folder:
        """A folder within."""
        return _Folder(self._files, f"{self._path}/{name}")

    def read(self, name: str) -> str | None:
        """The text kept under the name, or None."""
        path = f"{self._path}/{name}.json"
        return self._files.read_text(path) if self._files.exists(path) else None

    def write(self, name: str, text: str) -> None:
        """Keep a text, whole or not at all."""
        self._files.write_text(f"{self._path}/{name}.json", text)

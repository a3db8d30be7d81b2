"""The main job: join, learn, prove on held-out rows, rewrite the scores of everyone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import functions as F

from mcspark.config import Config
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import base_levels
from mcspark.core.training.training_table import Train
from mcspark.data.lease import Lease
from mcspark.data.sink import Publication
from mcspark.errors import ConfigurationError, ContractError
from mcspark.ml.baselines import Baseline
from mcspark.ml.cells import FixedPoint, ScoredColumns, choose_bins, make_cells
from mcspark.ml.groups import GroupSet
from mcspark.ml.methods import estimator_of
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.ml.row_training import RowTrainer
from mcspark.ml.scoring import with_calibrated
from mcspark.ml.working import WORKING
from mcspark.pipelines.gate import refusal, unmet
from mcspark.pipelines.inputs import Inputs, read_inputs
from mcspark.pipelines.measuring import measured, measuring_bins, told_lead
from mcspark.pipelines.publishing import (
    CALIBRATED,
    claim,
    finish_run,
    publish_empty,
    stage_metrics,
    stage_model,
    stage_tables,
)
from mcspark.pipelines.record import target_of
from mcspark.pipelines.refused import keep_refused
from mcspark.pipelines.run import Run
from mcspark.pipelines.summary import calibrated_summary
from mcspark.pipelines.workspace import Workspace
from mcspark.runtime.columns import column


def engine(config: Config) -> str | None:
    """What is to train trees; None for the baselines, which have none."""
    c = config.calibrator
    if c.method != "trees":
        return None
    return "synapseml" if c.training == "rows" else c.engine


def calibrate(run: Run) -> dict[str, Any]:
    """Run the job; returns the summary line.

    Raises
    ------
    McsparkError
        Nothing is published then, and the old output stands.
    """
    config = run.config
    target = target_of(run)
    if config.model is None:
        raise ConfigurationError("calibrate needs model.path: where the fitted calibrator goes")
    plan = GroupSet.from_config(config.groups)
    with (
        Lease(run.spark, target.held, run.run_id) as lease,
        Workspace(run.spark, target.leaf, run.run_id) as workspace,
        Publication(run.spark, run.run_id, lease) as publication,
    ):
        claim(run, publication, target, config.model.path, config.report.path if config.report else None)
        inputs = read_inputs(run, plan.families, plan.columns, needs_label=True)
        with run.stage("join", "join the attributes") as told:
            inputs = inputs.with_frame(workspace.keep(inputs.ordered().frame, "joined"))
            told["rows"] = inputs.report.accepted
            inputs.refuse_unmatched()
        if not inputs.n_accepted:
            return publish_empty(run, target, inputs, lease, publication)
        if not inputs.n_labelled:
            raise ContractError(
                f"{inputs.source}: no row has a label, so there is nothing to learn from; check scored.label"
            )
        scale = inputs.scale
        model, cells = _fit(run, inputs, plan, scale)
        with run.stage("measure", "measure before and after") as told:
            given, calibrated = cells.of_role(Role.test), _cells_after(run, inputs, model, scale)
            lead = told_lead(run, given, calibrated)
            before = measured(run, given, lead=lead)
            after = measured(run, calibrated, intervals=True, lead=lead)
            told["rows"] = after.rows
        changes = model.stages is None or bool(model.stages.stages)
        if problems := unmet(config.gate, before, after, changes=changes):
            kept = keep_refused(run, inputs, model, {"before": before, "after": after})
            raise refusal(problems, kept)
        with run.stage("write", "write the calibrated scores") as told:
            told["rows"] = inputs.n_accepted
            scored = with_calibrated(
                inputs.accepted, WORKING.score, model.fitted, model.calibrator, CALIBRATED
            )
            paths = stage_tables(publication, target, inputs, scored, CALIBRATED)
            paths["metrics"] = stage_metrics(run, publication, target, {"before": before, "after": after})
            stage_model(run, publication, target, config.model.path, model, paths["metrics"])
        paths["model"] = config.model.path
        summary = calibrated_summary(run, inputs, model, before, after, paths)
        both = {"before": before, "after": after}
        return finish_run(run, publication, target, summary, both, model, lease=lease)


def _fit(run: Run, inputs: Inputs, plan: GroupSet, scale: FixedPoint) -> tuple[MulticalibratorModel, Cells]:
    config, names = run.config, replace(WORKING, weight=inputs.weight)
    with run.stage("cells", "sum the labelled rows to cells") as told:
        learning = inputs.labelled.where(column(str(WORKING.split)) != F.lit(Role.test.name))
        estimator = estimator_of(config.calibrator)
        base = base_levels([*config.evaluation.levels, *estimator.grids])
        bins = choose_bins(learning, names, base, config.calibrator.score_bins, scale)
        with make_cells(inputs.labelled, names, plan.families, bins, scale) as table:
            cells, groups = table.collect_chosen(plan)
        told.update(rows=inputs.n_labelled, cells=len(cells))
        told.update(signatures=len(cells.membership), groups=len(groups.names))
    with run.stage("fit", f"learn the calibrator ({config.calibrator.method})"):
        if isinstance(estimator, Baseline):
            return estimator.fit_cells(cells, groups), cells
        trainer = estimator.trainer(run.spark)
        train: Train = trainer
        if config.calibrator.training == "rows":
            train = RowTrainer(inputs.labelled, names, groups, cells.bins, trainer)
        return estimator.fit_cells(cells, groups, train), cells


def _cells_after(run: Run, inputs: Inputs, model: MulticalibratorModel, scale: FixedPoint) -> Cells:
    """Cells of the calibrated score of the test rows: rows of one cell may end up in different levels."""
    test = inputs.labelled.where(column(str(WORKING.split)) == F.lit(Role.test.name))
    scored = with_calibrated(test, WORKING.score, model.fitted, model.calibrator, CALIBRATED)
    names = ScoredColumns(CALIBRATED, WORKING.label, inputs.weight)
    with make_cells(scored, names, model.fitted.families, measuring_bins(run), scale) as table:
        return table.collect(model.fitted)

"""The main job: join, learn, prove on held-out rows, rewrite the scores of everyone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame

from mcspark.config import Config
from mcspark.core.baselines.method import calibrated_cells
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.metrics.metrics import Elsewhere, Metrics
from mcspark.core.training.training_table import Train
from mcspark.data.leases.lease import Lease
from mcspark.data.publishing.sink import Publication
from mcspark.errors import ConfigurationError, ContractError
from mcspark.ml.baselines import Baseline
from mcspark.ml.cells.cells import ScoredColumns
from mcspark.ml.cells.groups import GroupSet
from mcspark.ml.cells.working import WORKING
from mcspark.ml.cluster.cluster_cells import Judged
from mcspark.ml.learning import labelled_cells
from mcspark.ml.methods import estimator_of
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.ml.segment_fits import Segments
from mcspark.ml.training.cluster_training import check_cluster
from mcspark.ml.training.row_training import RowTrainer
from mcspark.pipelines.judging.classes import choose, losses_of, published, top_result
from mcspark.pipelines.judging.gate import refusal, unmet, unmet_by_segment
from mcspark.pipelines.judging.measuring import (
    cells_to_measure,
    driver_cells,
    measured,
    measuring_bins,
    told_lead,
)
from mcspark.pipelines.judging.result import Calibration, ScoreResult
from mcspark.pipelines.judging.segments import (
    SegmentResult,
    carried,
    cells_after,
    fit_segments,
    measure_segments,
    segments_summary,
    trained_as,
)
from mcspark.pipelines.publishing.publishing import (
    claim,
    finish_run,
    publish_empty,
    stage_measured,
    stage_model,
    stage_tables,
)
from mcspark.pipelines.publishing.record import target_of
from mcspark.pipelines.publishing.refused import keep_refused
from mcspark.pipelines.publishing.summary import calibrated_summary
from mcspark.pipelines.reading.inputs import read_inputs
from mcspark.pipelines.reading.partitions import Partitions
from mcspark.pipelines.reading.rows import CALIBRATED, Inputs, calibrated_rows
from mcspark.pipelines.reading.workspace import Workspace
from mcspark.pipelines.run import Run
from mcspark.pipelines.window import Learning, Window
from mcspark.runtime import jars


def engine(config: Config) -> str | None:
    """What is to train trees; None for the baselines, which have none."""
    c = trained_as(config)
    return c.engine if c.method == "trees" else None


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
    _check_learner(run)
    plan = GroupSet.from_config(config.groups, config.features)
    with (
        Lease(run.spark, target.held, run.run_id) as lease,
        Workspace(run.spark, target.leaf, run.run_id) as workspace,
        Publication(run.spark, run.run_id, lease) as publication,
    ):
        claim(run, publication, target, config.model.path, config.report.path if config.report else None)
        window = Partitions(config) if config.cells else None
        # Of a partition that is too young to learn from nobody expects labels.
        due = window is None or window.name in window.window
        families, columns, _ = carried(config, plan)
        inputs = read_inputs(run, families, columns, needs_label=True, labels_due=due)
        with run.stage("join", "join the attributes") as counts:
            inputs = inputs.with_frame(workspace.keep(inputs.ordered().frame, "joined"))
            counts["rows"] = inputs.report.accepted
            inputs.refuse_unmatched()
        if not inputs.n_accepted:
            return publish_empty(run, target, inputs, lease, publication)
        if not inputs.n_labelled and config.learn is None:
            raise ContractError(
                f"{inputs.source}: no row has a label, so there is nothing to learn from; check scored.label"
            )
        learned = Learning(run, plan, inputs, workspace).window() if config.cells else None
        calibration = _calibration(run, inputs, plan, learned, workspace)
        if learned is not None and config.learn is not None:
            inputs = learned.with_roles(inputs)
        if problems := _unmet(run, calibration):
            raise refusal(problems, keep_refused(run, inputs, calibration))
        with run.stage("write", "write the calibrated scores") as counts:
            counts["rows"] = inputs.n_accepted
            scored = calibrated_rows(inputs, calibration.models, projected=calibration.projected)
            paths = stage_tables(publication, target, inputs, scored)
            paths |= stage_measured(run, publication, target, calibration.shown)
            stage_model(run, publication, target, config.model.path, calibration, paths["metrics"])
        paths["model"] = config.model.path
        summary = calibrated_summary(run, inputs, calibration, paths)
        return finish_run(run, publication, target, summary, calibration.shown, lease=lease)


def _calibration(
    run: Run, inputs: Inputs, plan: GroupSet, learned: Window | None, workspace: Workspace
) -> Calibration:
    """Learn a calibrator for each score, and measure each before and after."""
    every = inputs.by_score()
    found = []
    for alone in every:
        with alone.logged():
            found.append(_learned(run, alone, plan, learned))
    vector, test = None, None
    if run.config.scored.classes is not None:
        vector = choose(run, inputs, [one.model for one in found])
        models = published(vector, [one.model for one in found])
        found = [replace(one, model=model) for one, model in zip(found, models, strict=True)]
        # Measured once a class, and once for the class that is named.
        test = workspace.keep(_scored_test(inputs, models, projected=vector.projected), "judged")
        every = inputs.with_frame(test).by_score()
    results = []
    for alone, one in zip(every, found, strict=True):
        with alone.logged():
            results.append(_judged(run, alone, one, learned, is_scored=test is not None))
    if vector is None or test is None:
        return Calibration(results)
    top = top_result(run, inputs, test, results[0].fitted.fitted, calibrated=True)
    return Calibration(results, vector, top, losses_of(inputs, test, projected=vector.projected))


@dataclass(frozen=True)
class _Learned:
    """What was learned for one score: its cells, calibrator, and those of its segments."""

    cells: Cells
    model: MulticalibratorModel
    segments: Segments | None


def _learned(run: Run, inputs: Inputs, plan: GroupSet, learned: Window | None) -> _Learned:
    """Learn the calibrator of one score."""
    cells, groups = _cells(run, inputs, plan) if learned is None else (learned.cells, learned.groups)
    model = _fit(run, inputs, cells, groups)
    segments = fit_segments(run, inputs, plan, cells, groups) if run.config.segments else None
    return _Learned(cells, model if segments is None else segments.model(model), segments)


def _judged(
    run: Run, inputs: Inputs, found: _Learned, learned: Window | None, *, is_scored: bool
) -> ScoreResult:
    """Measure one score before and after; ``is_scored`` rows are the test rows, and have both."""
    config, segments = run.config, found.segments
    test = found.cells.of_role(Role.test) if learned is None or config.learn is None else learned.test
    metrics, by_segment = _measured(run, inputs, found.model, test, segments, is_scored=is_scored)
    more: dict[str, Any] = {"learned": learned.summary()} if learned else {}
    if segments is not None:
        failed = unmet_by_segment(config, by_segment)
        more["segments"] = segments_summary(config, segments, by_segment, failed)
    return ScoreResult(inputs.scored.score, metrics, found.model, by_segment, more)


def _unmet(run: Run, calibration: Calibration) -> list[str]:
    """What the scores and their segments fail of the gate."""
    problems = []
    several = run.config.scored.several
    for result in calibration.shown:
        before, after = result.metrics["before"], result.metrics["after"]
        found = unmet(
            run.config.gate, before, after, changes=calibration.changes(result), among=len(calibration.shown)
        )  # fmt: skip
        found += result.extra.get("segments", {}).get("unmet", [])
        problems += [f"score {result.name}: {problem}" for problem in found] if several else found
    return problems


def _measured(
    run: Run,
    inputs: Inputs,
    model: MulticalibratorModel,
    given: Cells,
    segments: Segments | None,
    *,
    is_scored: bool,
) -> tuple[dict[str, Metrics], list[SegmentResult]]:
    """The metrics of the held-out rows before and after, and those of each segment."""
    with run.stage("measure", "measure before and after") as counts, ExitStack() as stack:
        by_segment = None
        calibrated: Cells | Elsewhere
        if segments is not None:
            scored = _scored_test(inputs, [model])
            by_segment = stack.enter_context(cells_after(run, inputs, scored, CALIBRATED, segments))
            calibrated = by_segment.every.collect(model.fitted, driver_cells(run).most)
        elif run.config.learn is None:
            scored = inputs.labelled if is_scored else _scored_test(inputs, [model])
            calibrated = stack.enter_context(_cells_after(run, inputs, scored, model)).cells
        else:
            calibrated = calibrated_cells(model.calibrator, given, measuring_bins(run))
        lead = told_lead(run, given, calibrated)
        before = measured(run, given, lead=lead)
        after = measured(run, calibrated, intervals=True, lead=lead)
        counts["rows"] = after.rows
        results = []
        if segments is not None and by_segment is not None:
            results = measure_segments(run, inputs, segments, by_segment, lead)
    return {"before": before, "after": after}, results


def _check_learner(run: Run) -> None:
    c = run.config.calibrator
    by_rows = c.method == "trees" and c.training == "rows"
    if by_rows and (c.engine == "lightgbm" or jars.lacking(run.spark) is not None):
        check_cluster(run.spark)


def _cells(run: Run, inputs: Inputs, plan: GroupSet) -> tuple[Cells, FittedGroups]:
    config, names = run.config, replace(WORKING, weight=inputs.weight)
    with run.stage("cells", "sum the labelled rows to cells") as counts:
        levels = [*config.evaluation.levels, *estimator_of(config.calibrator).grids]
        limit = driver_cells(run)
        cells, groups = labelled_cells(
            inputs.labelled, names, plan, levels, config.calibrator.score_bins, inputs.scale,
            limit.rows(inputs.n_labelled), limit.most,
        )  # fmt: skip
        counts.update(rows=inputs.n_labelled, cells=len(cells))
        counts.update(signatures=len(cells.membership), groups=len(groups.names))
    return cells, groups


def _fit(run: Run, inputs: Inputs, cells: Cells, groups: FittedGroups) -> MulticalibratorModel:
    calibrator = run.config.calibrator
    with run.stage("fit", f"learn the calibrator ({calibrator.method})"):
        estimator = estimator_of(trained_as(run.config))
        if isinstance(estimator, Baseline):
            return estimator.fit_cells(cells, groups)
        trainer = estimator.trainer(run.spark)
        train: Train = trainer
        if calibrator.training == "rows":
            names = replace(WORKING, weight=inputs.weight)
            train = RowTrainer(inputs.labelled, names, groups, cells.bins, trainer)
        return estimator.fit_cells(cells, groups, train)


def _cells_after(
    run: Run, inputs: Inputs, scored: DataFrame, model: MulticalibratorModel
) -> AbstractContextManager[Judged]:
    """Cells of the calibrated score of the test rows: rows of one cell may end up in different levels."""
    names = ScoredColumns(CALIBRATED, WORKING.label, inputs.weight)
    return cells_to_measure(run, inputs, scored, names, model.fitted.measured)


def _scored_test(
    inputs: Inputs, models: Sequence[MulticalibratorModel], *, projected: bool = False
) -> DataFrame:
    return calibrated_rows(inputs.of_role(Role.test), models, projected=projected)

"""Measuring any scored table: one pass over the joined rows, nothing is fitted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from mcspark.core.cells.cells import Role
from mcspark.core.cells.groups import FittedGroups
from mcspark.data.publishing.sink import Publication, Target
from mcspark.errors import GateError
from mcspark.ml.cells.groups import GroupSet
from mcspark.ml.cells.working import WORKING
from mcspark.pipelines.judging.classes import losses_of, top_result
from mcspark.pipelines.judging.drift import change_since, earlier_metrics, too_far
from mcspark.pipelines.judging.measuring import cells_to_measure, measured, told_lead
from mcspark.pipelines.judging.result import ScoreResult
from mcspark.pipelines.publishing.publishing import finish_run, stage_metrics
from mcspark.pipelines.publishing.record import target_of
from mcspark.pipelines.publishing.reporting import claim_report
from mcspark.pipelines.publishing.summary import empty_summary, measured_summary
from mcspark.pipelines.reading.inputs import read_inputs
from mcspark.pipelines.reading.rows import Inputs
from mcspark.pipelines.run import Run
from mcspark.report.metrics_table import MetricsTable, metrics_frame


def audit(run: Run) -> dict[str, Any]:
    """Run the job; returns the summary line."""
    target = target_of(run)
    against = run.config.drift.against
    earlier = earlier_metrics(run.spark, against) if against else None
    if run.config.report:
        claim_report(run, Publication(run.spark, run.run_id), run.config.report.path)
    plan = GroupSet.from_config(run.config.groups)
    inputs = read_inputs(run, plan.families, plan.columns, needs_label=True)
    inputs.refuse_unmatched()
    if not inputs.n_accepted:
        return _empty(run, inputs, target)
    results = []
    with inputs.read_again() as kept:
        for alone in kept.by_score():
            with alone.logged():
                result, groups, signatures = _measured(run, alone, plan)
            results.append(result)
        test = None
        if run.config.scored.classes is not None:
            held_out = kept.of_role(Role.test).accepted
            results.append(top_result(run, kept, held_out, groups, calibrated=False))
            test = losses_of(kept, held_out, projected=None)
    with Publication(run.spark, run.run_id) as publication:
        paths = {"metrics": stage_metrics(run, publication, target, results)}
        summary = measured_summary(run, inputs, len(groups.names), signatures, results, paths, test)
        if earlier is not None:
            return _compared(run, publication, target, summary, results, *earlier)
        return finish_run(run, publication, target, summary, results)


def _measured(run: Run, inputs: Inputs, plan: GroupSet) -> tuple[ScoreResult, FittedGroups, int]:
    """The metrics of one score, with the groups and the number of signatures."""
    names = replace(WORKING, weight=inputs.weight)
    with ExitStack() as stack:
        with run.stage("cells", "sum the labelled rows to cells") as counts:
            counts["rows"] = inputs.n_labelled
            judged = stack.enter_context(cells_to_measure(run, inputs, inputs.labelled, names, plan))
        with run.stage("measure", "measure the test rows") as counts:
            metrics = measured(run, judged.cells, intervals=True, lead=told_lead(run, judged.cells))
            counts["rows"] = metrics.rows
    result = ScoreResult(inputs.scored.score, {"before": metrics})
    return result, judged.groups, judged.signatures


def _compared(
    run: Run,
    publication: Publication,
    target: Target,
    summary: dict[str, Any],
    results: Sequence[ScoreResult],
    against: str,
    then: MetricsTable,
) -> dict[str, Any]:
    """Compare with the earlier run; whatever comes of it is in the summary, the report and the manifest.

    Raises
    ------
    GateError
        If a limit of the section drift is exceeded.
    """
    limits = run.config.drift
    change = change_since(MetricsTable(metrics_frame(results[0].metrics)), then, against, limits.stage)
    problems = too_far(limits, change)
    status = "gate" if problems else "ok"
    compared = {**summary, "status": status, "drift": {**change.summary(), "problems": problems}}
    finished = finish_run(run, publication, target, compared, results)
    if problems:
        run.is_recorded = True
        raise GateError(
            f"the table has drifted from run {against}: {'; '.join(problems)}; look into the rows, "
            "calibrate again, or change the limits of drift",
            finished["paths"],
        )
    return finished


def _empty(run: Run, inputs: Inputs, target: Target) -> dict[str, Any]:
    """An audit of no rows, where that is allowed: a metrics table without rows, and no number."""
    with Publication(run.spark, run.run_id) as publication:
        paths = {"metrics": stage_metrics(run, publication, target, [])}
        return finish_run(run, publication, target, empty_summary(run, inputs, paths))

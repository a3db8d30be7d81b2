"""A candidate that the gate has refused: kept aside, whole and with its report, for people to look at."""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from mcspark.core.metrics import Metrics
from mcspark.data.lease import Lease
from mcspark.errors import McsparkError
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.ml.scoring import with_calibrated
from mcspark.ml.working import WORKING
from mcspark.pipelines.inputs import Inputs
from mcspark.pipelines.publishing import (
    CALIBRATED,
    finish_run,
    publication_of,
    stage_metrics,
    stage_model,
    stage_tables,
    target_of,
)
from mcspark.pipelines.run import Run
from mcspark.pipelines.summary import calibrated_summary

log = structlog.get_logger(__name__)

SUFFIX = "refused"


def keep_refused(
    run: Run, inputs: Inputs, model: MulticalibratorModel, measured: Mapping[str, Metrics]
) -> dict[str, str]:
    """Write everything that would have been published beside its place, with ``_refused`` behind the name.

    The next refused candidate takes its place. Returns the paths; none if they cannot be written, for that
    must not hide why the candidate was refused.
    """
    target = target_of(run).beside(SUFFIX)
    try:
        with (
            run.stage("refused", "keep the refused candidate aside"),
            Lease(run.spark, target.leaf, run.run_id) as lease,
            publication_of(run, target, refused_place(_model_path(run))) as publication,
        ):
            scored = with_calibrated(
                inputs.accepted, WORKING.score, model.fitted, model.calibrator, CALIBRATED
            )
            paths = stage_tables(publication, target, inputs, scored, CALIBRATED)
            paths["metrics"] = stage_metrics(run, publication, target, measured)
            paths["model"] = refused_place(_model_path(run))
            stage_model(run, publication, target, paths["model"], model, paths["metrics"])
            lease.check()
            publication.publish()
        summary = calibrated_summary(run, inputs, model, measured["before"], measured["after"], paths)
        report = run.config.report
        finished = finish_run(
            run, target, {**summary, "status": "gate"}, measured, model,
            report=refused_place(report.path) if report else None,
        )  # fmt: skip
    except McsparkError as error:
        log.warning("the refused candidate could not be kept", reason=str(error))
        return {}
    kept: dict[str, str] = finished["paths"]
    return kept


def refused_place(path: str) -> str:
    """Where a refused model or report goes: ``report.html`` becomes ``report_refused.html``."""
    stem = path.rstrip("/").removesuffix(".html")
    return f"{stem}_{SUFFIX}{'.html' if path.endswith('.html') else ''}"


def _model_path(run: Run) -> str:
    assert run.config.model is not None
    return run.config.model.path

"""A candidate that the gate has refused: kept aside, whole and with its report, for people to look at."""

from __future__ import annotations

import structlog

from mcspark.config.clashes import REFUSED, refused_place
from mcspark.data.leases.lease import Lease
from mcspark.data.publishing.sink import Publication
from mcspark.errors import McsparkError
from mcspark.pipelines.judging.result import Calibration
from mcspark.pipelines.publishing.publishing import (
    claim,
    finish_run,
    stage_measured,
    stage_model,
    stage_tables,
)
from mcspark.pipelines.publishing.record import target_of
from mcspark.pipelines.publishing.summary import calibrated_summary
from mcspark.pipelines.reading.rows import Inputs, calibrated_rows
from mcspark.pipelines.run import Run

log = structlog.get_logger(__name__)


def keep_refused(
    run: Run,
    inputs: Inputs,
    calibration: Calibration,
) -> dict[str, str]:
    """Write everything that would have been published beside its place, with ``_refused`` behind the name.

    The next refused candidate takes its place. Returns the paths; none if they cannot be written, for that
    must not hide why the candidate was refused.
    """
    target, place = target_of(run).beside(REFUSED), refused_place(_model_path(run))
    page = refused_place(run.config.report.path) if run.config.report else None
    try:
        with (
            Lease(run.spark, target.held, run.run_id) as lease,
            Publication(run.spark, run.run_id, lease) as publication,
        ):
            claim(run, publication, target, place, page)
            with run.stage("refused", "keep the refused candidate aside"):
                scored = calibrated_rows(inputs, calibration.models, projected=calibration.projected)
                paths = stage_tables(publication, target, inputs, scored)
                paths |= stage_measured(run, publication, target, calibration.shown)
                stage_model(run, publication, target, place, calibration, paths["metrics"])
                paths["model"] = place
            summary = {**calibrated_summary(run, inputs, calibration, paths), "status": "gate"}
            finished = finish_run(
                run, publication, target, summary, calibration.shown, report=page, lease=lease
            )
    except McsparkError as error:
        log.warning("the refused candidate could not be kept", reason=str(error))
        return {}
    kept: dict[str, str] = finished["paths"]
    return kept


def _model_path(run: Run) -> str:
    assert run.config.model is not None
    return run.config.model.path

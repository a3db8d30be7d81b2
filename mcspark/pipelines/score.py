"""Scoring with a saved model: no labels, no SynapseML, one pass over the joined rows."""

from __future__ import annotations

from typing import Any

import structlog

from mcspark.core.cells.groups import FittedGroups
from mcspark.data.leases.lease import Lease
from mcspark.data.publishing.sink import Publication
from mcspark.errors import ConfigurationError
from mcspark.ml.cells.groups import unseen_categories, with_categories
from mcspark.pipelines.publishing.publishing import (
    claim,
    finish_run,
    publish_empty,
    stage_tables,
)
from mcspark.pipelines.publishing.record import target_of
from mcspark.pipelines.publishing.summary import scored_summary
from mcspark.pipelines.reading.inputs import read_inputs
from mcspark.pipelines.reading.rows import Inputs, calibrated_rows
from mcspark.pipelines.reading.stored import stored_models
from mcspark.pipelines.run import Run

log = structlog.get_logger(__name__)


def score(run: Run) -> dict[str, Any]:
    """Run the job; returns the summary line."""
    config = run.config
    target = target_of(run)
    if config.model is None:
        raise ConfigurationError("score needs model.path: the calibrator that calibrate has saved")
    with (
        Lease(run.spark, target.held, run.run_id) as lease,
        Publication(run.spark, run.run_id, lease) as publication,
    ):
        claim(run, publication, target)
        with run.stage("model", "load the model"):
            models, projected = stored_models(run.spark, config.model.path, run.run_id, config.scored)
        model = models[0]  # the others are for the same groups
        scoring = model.scoring
        inputs = read_inputs(run, scoring.groups.signed, scoring.groups.columns, needs_label=False)
        inputs.refuse_unmatched()
        if not inputs.n_accepted:
            return publish_empty(run, target, inputs, lease, publication)
        with run.stage("unseen", "count categories that the model has never seen"):
            unseen = _unseen(inputs, model.fitted)
            if unseen:
                log.warning("categories that the model has never seen count as no group", **unseen)
        with run.stage("write", "write the calibrated scores") as counts:
            counts["rows"] = inputs.n_accepted
            scored = calibrated_rows(inputs.ordered(), models, projected=projected)
            paths = stage_tables(publication, target, inputs, scored)
        paths["model"] = config.model.path
        summary = scored_summary(run, inputs, model, unseen, paths)
        return finish_run(run, publication, target, summary, lease=lease)


def _unseen(inputs: Inputs, fitted: FittedGroups) -> dict[str, int]:
    """Rows of each attribute's unseen categories; the join is run for it only if a table has some."""
    placed = 0
    suspicious = False
    for frame in inputs.origins:
        families = tuple(f for f in fitted.signed if set(f.columns) <= set(frame.columns))
        placed += len(families)
        categorised = with_categories(frame, families)
        suspicious = suspicious or bool(unseen_categories(categorised, FittedGroups(families)))
    if suspicious or placed < len(fitted.signed):
        return unseen_categories(inputs.accepted, fitted)
    return {}

"""The summary line of every job: the last line of stdout, and part of the manifest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from mcspark.core.metrics.metrics import Metrics
from mcspark.core.training.recipe import Recipe
from mcspark.core.training.rounds import Saturation
from mcspark.data.tables import where
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.pipelines.inputs import Inputs
from mcspark.pipelines.run import Run


def calibrated_summary(
    run: Run,
    inputs: Inputs,
    model: MulticalibratorModel,
    measured: Mapping[str, Metrics],
    paths: dict[str, str],
    told: Mapping[str, Any],
) -> dict[str, Any]:
    """Summary of a calibration; the saturation is that of the second pass on the test rows.

    ``told`` has what is not of every run: ``learned`` of kept cells, ``segments``.
    """
    fit, before, after = model.summary, measured["before"], measured["after"]
    assert fit is not None and fit.cells is not None
    return {
        "status": "ok",
        "run_id": run.run_id,
        "method": model.method,
        "rows": {**inputs.rows(), "test": before.rows},
        "rejected_by_reason": _reasons(inputs),
        "clipped": inputs.report.clipped,
        "unmatched": _unmatched(inputs),
        "without_category": inputs.without_category,
        "groups": len(model.fitted.names),
        "groups_dropped": len(model.fitted.dropped),
        "signatures": len(fit.cells.membership),
        "cells": len(fit.cells),
        "stages": [{"trees": s.trees, "link": s.link} for s in (model.stages.stages if model.stages else ())],
        "recipe": _recipe(fit.recipe),
        "engine": fit.engine,
        "warnings": list(fit.warnings),
        "lead": _lead(before, after),
        "metrics": {"before": before.summary(), "after": after.summary()},
        "saturation": _saturation(fit.saturation, after),
        **told,
        "paths": paths,
    }


def measured_summary(
    run: Run, inputs: Inputs, groups: int, signatures: int, before: Metrics, paths: dict[str, str]
) -> dict[str, Any]:
    """Summary of an audit."""
    return {
        "status": "ok",
        "run_id": run.run_id,
        "method": "none",
        "rows": {**inputs.rows(), "test": before.rows},
        "rejected_by_reason": _reasons(inputs),
        "clipped": inputs.report.clipped,
        "unmatched": _unmatched(inputs),
        "without_category": inputs.without_category,
        "groups": groups,
        "signatures": signatures,
        "lead": _lead(before),
        "metrics": {"before": before.summary()},
        "paths": paths,
    }


def scored_summary(
    run: Run, inputs: Inputs, model: MulticalibratorModel, unseen: dict[str, int], paths: dict[str, str]
) -> dict[str, Any]:
    """Summary of scoring with a saved model."""
    segments = (
        {}
        if model.table is None
        else {"segments": {"by": list(model.table.columns), "own": len(model.table)}}
    )
    return {
        "status": "ok",
        "run_id": run.run_id,
        "method": model.method,
        "rows": inputs.rows(),
        "rejected_by_reason": _reasons(inputs),
        "clipped": inputs.report.clipped,
        "unmatched": _unmatched(inputs),
        "without_category": inputs.without_category,
        "unseen_categories": unseen,
        "groups": len(model.fitted.names),
        **segments,
        "paths": paths,
    }


def empty_summary(run: Run, inputs: Inputs, paths: dict[str, str]) -> dict[str, Any]:
    """Summary of a run that found no row to score and was allowed to."""
    return {
        "status": "ok",
        "run_id": run.run_id,
        "method": "none",
        "rows": {**inputs.rows(), "test": 0},
        "rejected_by_reason": _reasons(inputs),
        "clipped": inputs.report.clipped,
        "groups": 0,
        "signatures": 0,
        "stages": [],
        "metrics": {},
        "paths": paths,
    }


def _lead(before: Metrics, after: Metrics | None = None) -> dict[str, Any]:
    """The error to look at first, and the grids that are blind to these scores."""
    last = after or before
    found = {**before.lead.summary(), "before": before.leading()}
    found |= {"after": after.leading()} if after else {}
    return {**found, "noise_floor": last.leading("noise_floor"), "p_value": last.leading("p_value")}


def _reasons(inputs: Inputs) -> dict[str, int]:
    reasons = dict(inputs.report.reasons)
    if inputs.rejected_unmatched:
        reasons["unmatched"] = inputs.rejected_unmatched
    return reasons


def _unmatched(inputs: Inputs) -> dict[str, int]:
    return dict(zip(map(where, inputs.tables), inputs.unmatched, strict=True))


def _recipe(found: Recipe | None) -> dict[str, Any] | None:
    """The settings that were chosen, how many candidates were tried, and each of them."""
    if found is None:
        return None
    chosen = {
        key: getattr(found, key) for key in ("link", "learning_rate", "min_rows_in_leaf", "rounds", "refit")
    }
    candidates = [asdict(candidate) for candidate in found.candidates]
    return {"name": found.name, "chosen": chosen, "tried": len(candidates), "candidates": candidates}


def _saturation(found: Saturation | None, after: Metrics) -> dict[str, Any] | None:
    """The paper's bound: MC error <= sqrt(ε_loss + ε_round), with ε_round = ℓ(f̃_m) − ℓ(f)."""
    if found is None or after.loss is None:
        return None
    rounding = {str(m): e.loss - after.loss for m, e in after.by_level.items() if e.loss is not None}
    return {
        "loss": found.loss,
        "loss_second": found.loss_second,
        "epsilon_loss": found.epsilon_loss,
        "epsilon_round": rounding,
        "bound": {m: math.sqrt(max(found.epsilon_loss + e, 0.0)) for m, e in rounding.items()},
    }

"""The summary line of every job: the last line of stdout, and part of the manifest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mcspark.core.metrics.metrics import Metrics
from mcspark.core.saved_scores import score_folder
from mcspark.core.training.recipe import Recipe
from mcspark.core.training.rounds import Saturation
from mcspark.data.tables import where
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.pipelines.judging.result import Calibration, Losses, ScoreResult
from mcspark.pipelines.reading.rows import Inputs
from mcspark.pipelines.run import Run


def calibrated_summary(
    run: Run, inputs: Inputs, calibration: Calibration, paths: dict[str, str]
) -> dict[str, Any]:
    """Summary of a calibration; the saturation is that of the second pass on the test rows."""
    results = calibration.results
    model = results[0].fitted  # the others are for the same rows and groups
    fit = model.summary
    assert fit is not None and fit.cells is not None
    return {
        "status": "ok",
        "run_id": run.run_id,
        "method": model.method,
        "rows": {**inputs.rows(), "test": results[0].metrics["before"].rows},
        "rejected_by_reason": _reasons(inputs),
        "clipped": inputs.report.clipped,
        "unmatched": _unmatched(inputs),
        "without_category": inputs.without_category,
        "groups": len(model.fitted.names),
        "groups_dropped": len(model.fitted.dropped),
        **_features(model),
        "signatures": len(fit.cells.membership),
        **_by_score(
            inputs, calibration.shown,
            [_calibrated(result) if result.model else _metrics(result) for result in calibration.shown],
            paths["model"],
        ),
        **_classes(inputs, calibration),
        "paths": paths,
    }  # fmt: skip


def _classes(inputs: Inputs, calibration: Calibration) -> dict[str, Any]:
    """Metrics of the classes' scores together."""
    vector, test = calibration.vector, calibration.test
    if vector is None or test is None:
        return {}
    losses = {"early_stopping": vector.stopping, "test": test}
    return _losses(inputs, losses, projected=vector.projected)


def _losses(inputs: Inputs, losses: Mapping[str, Losses], **reported: bool) -> dict[str, Any]:
    """The log losses of the classes' scores, and further metrics of them together."""
    found = {part: asdict(loss) for part, loss in losses.items()}
    return {"classes": {"scores": dict(inputs.scored.classes or {}), **reported, "log_loss": found}}


def _metrics(result: ScoreResult) -> dict[str, Any]:
    """The metrics of a score, and what is led with."""
    before, after = result.metrics["before"], result.metrics.get("after")
    return {
        "lead": _lead(before, after),
        "metrics": {stage: found.summary() for stage, found in result.metrics.items()},
    }


def _by_score(
    inputs: Inputs,
    results: Sequence[ScoreResult],
    reported: Sequence[Mapping[str, Any]],
    model: str | None = None,
) -> Mapping[str, Any]:
    """The summary of the one score, or of each of several by its column, with what is made of it."""
    if not inputs.scored.several:
        return reported[0]
    found = {result.name: dict(own) for result, own in zip(results, reported, strict=True)}
    if model is not None:
        for number, (name, made) in enumerate(_columns(inputs).items()):
            found[name] = {**made, **found[name], "paths": {"model": f"{model}/{score_folder(number)}"}}
    return {"scores": found}


def _calibrated(result: ScoreResult) -> dict[str, Any]:
    """What is of one score alone."""
    model = result.fitted
    fit = model.summary
    assert fit is not None and fit.cells is not None
    return {
        "cells": len(fit.cells),
        "stages": [{"trees": s.trees, "link": s.link} for s in (model.stages.stages if model.stages else ())],
        "recipe": _recipe(fit.recipe),
        "engine": fit.engine,
        "warnings": list(fit.warnings),
        **_metrics(result),
        "saturation": _saturation(fit.saturation, result.metrics["after"]),
        **result.extra,
    }


def _features(model: MulticalibratorModel) -> dict[str, Any]:
    features = model.fitted.features
    if not features:
        return {}
    return {"features": {"columns": len(features), "categories": len(model.fitted.learned_names)}}


def measured_summary(
    run: Run,
    inputs: Inputs,
    groups: int,
    signatures: int,
    results: Sequence[ScoreResult],
    paths: dict[str, str],
    test: Losses | None = None,
) -> dict[str, Any]:
    """Summary of an audit; ``test`` is the log loss of the classes' scores."""
    return {
        "status": "ok",
        "run_id": run.run_id,
        "method": "none",
        "rows": {**inputs.rows(), "test": results[0].metrics["before"].rows},
        "rejected_by_reason": _reasons(inputs),
        "clipped": inputs.report.clipped,
        "unmatched": _unmatched(inputs),
        "without_category": inputs.without_category,
        "groups": groups,
        "signatures": signatures,
        **_by_score(inputs, results, list(map(_metrics, results))),
        **(_losses(inputs, {"test": test}) if test is not None else {}),
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
        **({"scores": _columns(inputs)} if inputs.scored.several else {}),
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


def _columns(inputs: Inputs) -> dict[str, dict[str, str]]:
    """Of several scores the columns of the output, by the score."""
    return {score.name: {"column": score.added} for score in inputs.scores}


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

"""The report of a run: what the pipeline knows, put together and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mcspark.core.metrics import Metrics
from mcspark.data.manifest import versions
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.pipelines.run import Run
from mcspark.report.card import card
from mcspark.report.facts import RunFacts
from mcspark.report.metrics_table import metrics_frame
from mcspark.report.page import render
from mcspark.runtime.files import Files


def write_report(
    run: Run,
    summary: Mapping[str, Any],
    measured: Mapping[str, Metrics],
    model: MulticalibratorModel | None = None,
    *,
    page: str,
) -> str:
    """Write the page, and the model card in Markdown beside it; returns the path of the page."""
    facts = run_facts(run, summary, measured, model)
    files = Files(run.spark, page)
    files.write_text(page, render(facts))
    files.write_text(f"{page.removesuffix('.html')}.md", card(facts))
    return page


def run_facts(
    run: Run,
    summary: Mapping[str, Any],
    measured: Mapping[str, Metrics],
    model: MulticalibratorModel | None = None,
) -> RunFacts:
    """All that a report says about this run."""
    facts = RunFacts(
        summary=summary,
        metrics=metrics_frame(measured),
        configuration=run.config.redacted(),
        versions=versions(run.spark),
        dropped=model.fitted.dropped if model else (),
    )
    if model is None or model.stages is None or not model.stages.stages:
        return facts
    # After a refit no row is left that stopped the trees.
    known = model.summary is not None and model.summary.cells is not None and not run.config.calibrator.refit
    training = model.training_curve() if known else None
    return replace(facts, curves=model.curves(), pairs=model.pairs(), training=training)

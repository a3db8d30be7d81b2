"""The report of a run: what the pipeline knows, put together and staged."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from mcspark.config import redact
from mcspark.config.clashes import card_of
from mcspark.core.metrics.metrics import Metrics
from mcspark.data.leases.manifest import versions
from mcspark.data.publishing.sink import Publication
from mcspark.ml.groups import GroupSet
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.pipelines.run import Run
from mcspark.pipelines.segments import SegmentResult, segment_rows
from mcspark.report.card import card
from mcspark.report.facts import RunFacts
from mcspark.report.metrics_table import metrics_frame
from mcspark.report.names import with_names
from mcspark.report.page import render

PAGE = re.compile(r"<title>Calibration report [\w-]+</title>")
"""Found in every page; a file without it is somebody else's."""

CARD = re.compile(r"\A# Calibrator [a-z]+-\d{8}T\d{6}Z-[0-9a-f]{8}\n")
"""Found in every model card."""


def claim_report(publication: Publication, page: str) -> None:
    """Refuse, before any work is done, a report that could not be put there."""
    publication.claim_text(page, PAGE)
    publication.claim_text(card_of(page), CARD)


def stage_report(
    run: Run,
    publication: Publication,
    summary: Mapping[str, Any],
    measured: Mapping[str, Metrics],
    model: MulticalibratorModel | None = None,
    segments: Sequence[SegmentResult] = (),
    *,
    page: str,
) -> str:
    """Write the page, and the model card in Markdown beside it, aside; returns the path of the page."""
    facts = run_facts(run, summary, measured, model, segments)
    publication.stage_text(page, render(facts), PAGE)
    publication.stage_text(card_of(page), card(facts), CARD)
    return page


def run_facts(
    run: Run,
    summary: Mapping[str, Any],
    measured: Mapping[str, Metrics],
    model: MulticalibratorModel | None = None,
    segments: Sequence[SegmentResult] = (),
) -> RunFacts:
    """All that a report says about this run."""
    families = GroupSet.from_config(run.config.groups).families
    facts = _facts(run, summary, measured, model)
    if segments:
        facts = replace(facts, segments=pd.DataFrame(segment_rows(segments)))
    return with_names(facts, families)


def _facts(
    run: Run, summary: Mapping[str, Any], measured: Mapping[str, Metrics], model: MulticalibratorModel | None
) -> RunFacts:
    facts = RunFacts(
        summary=redact(dict(summary)),
        metrics=metrics_frame(measured),
        configuration=run.config.redacted(),
        versions=versions(run.spark),
        dropped=model.fitted.dropped if model else (),
    )
    if model is None or model.stages is None or not model.stages.stages:
        return facts
    # After a refit no row is left that stopped the trees.
    fit = model.summary
    known = fit is not None and fit.cells is not None and not fit.refitted
    training = model.training_curve() if known else None
    return replace(facts, curves=model.curves(), pairs=model.pairs(), training=training)

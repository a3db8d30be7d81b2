"""The report of a run: what the pipeline knows, put together and staged."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pandas as pd

from mcspark.config import redact
from mcspark.config.clashes import card_of, page_of_score, pages_of
from mcspark.data.leases.manifest import versions
from mcspark.data.publishing.sink import Publication
from mcspark.ml.cells.groups import GroupSet
from mcspark.ml.curves import largest_curves
from mcspark.pipelines.judging.result import ScoreResult
from mcspark.pipelines.judging.segments import segment_rows
from mcspark.pipelines.run import Run
from mcspark.report.card import card
from mcspark.report.facts import RunFacts
from mcspark.report.metrics_table import metrics_frame
from mcspark.report.names import with_names
from mcspark.report.page import render
from mcspark.report.scores import ScorePage, render_scores, summary_of_score
from mcspark.runtime.files.files import leaf

PAGE = re.compile(r"<title>Calibration report [\w-]+</title>")
"""Found in every page; a file without it is somebody else's."""

CARD = re.compile(r"\A# Calibrator [a-z]+-\d{8}T\d{6}Z-[0-9a-f]{8}\n")
"""Found in every model card."""


def claim_report(run: Run, publication: Publication, page: str) -> None:
    """Refuse, before any work is done, a report that could not be put there."""
    pages = range(pages_of(run.config.scored))
    for place in (page, *(page_of_score(page, number) for number in pages)):
        publication.claim_text(place, PAGE)
        publication.claim_text(card_of(place), CARD)


def stage_report(
    run: Run,
    publication: Publication,
    summary: Mapping[str, Any],
    results: Sequence[ScoreResult],
    *,
    page: str,
) -> dict[str, Any]:
    """Write the page, and the model card in Markdown beside it, aside; returns the summary with its path.

    Of several scores each has a page and a card of its own.
    """
    reported = {**summary, "paths": {**summary["paths"], "report": page}}
    if not run.config.scored.several:
        _stage_page(publication, run_facts(run, summary, results[0]), page)
        return reported
    pages = []
    for number, result in enumerate(results):
        place = page_of_score(page, number)
        facts = run_facts(run, summary_of_score(summary, result.name), result)
        _stage_page(publication, facts, place)
        pages.append(ScorePage(result.name, facts, quote(leaf(place))))
        own = reported["scores"][result.name]
        own = {**own, "paths": {**own.get("paths", {}), "report": place}}
        reported["scores"] = {**reported["scores"], result.name: own}
    publication.stage_text(page, render_scores(summary, pages), PAGE)
    publication.stage_text(card_of(page), render_scores(summary, pages, markdown=True), CARD)
    return reported


def _stage_page(publication: Publication, facts: RunFacts, page: str) -> None:
    publication.stage_text(page, render(facts), PAGE)
    publication.stage_text(card_of(page), card(facts), CARD)


def run_facts(run: Run, summary: Mapping[str, Any], result: ScoreResult) -> RunFacts:
    """All that a report says about this run and one score."""
    families = GroupSet.from_config(run.config.groups).families
    facts = _facts(run, summary, result)
    if result.segments:
        facts = replace(facts, segments=pd.DataFrame(segment_rows(result.segments)))
    return with_names(facts, families)


def _facts(run: Run, summary: Mapping[str, Any], result: ScoreResult) -> RunFacts:
    model = result.model
    facts = RunFacts(
        summary=redact(dict(summary)),
        metrics=metrics_frame(result.metrics),
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
    curves = largest_curves(model.curves(), model.fitted.names)
    return replace(facts, curves=curves, pairs=model.pairs(), training=training)

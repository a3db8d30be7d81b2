"""The report of a run, drawn again from what it has left on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mcspark.cli.files import free_place, local_place, written_aside
from mcspark.cli.left import json_object, metrics_at, segments_at
from mcspark.config.clashes import page_of_score
from mcspark.core.model.stages import Stages
from mcspark.core.saved import RUN_FILE
from mcspark.errors import ContractError
from mcspark.ml.curves import curves_frame, largest_curves, pairs_frame
from mcspark.report.facts import RunFacts
from mcspark.report.names import families_of, with_names
from mcspark.report.page import render
from mcspark.report.scores import ScorePage, render_scores, summary_of_score
from mcspark.scorer.scoring import read_model

_NOT_SUMMARY = ("configuration", "configuration_hash", "versions", "schema_version", "job", "seconds")


def draw_again(run: str, output: str, *, force: bool = False) -> Iterator[str]:
    """Write the page, and say what is left out of it.

    Parameters
    ----------
    run : str
        The manifest.
    output : str
        The page.
    force : bool
        Replace it.

    Raises
    ------
    ConfigurationError
        If the page is there, or its folder is not.
    ContractError
        If it is no manifest, or its metrics are not on this machine.
    """
    place = free_place(output, force=force)
    manifest = json_object(local_place(run))
    if not isinstance(manifest.get("run_id"), str) or not isinstance(manifest.get("configuration"), dict):
        raise ContractError(f"{run}: not the manifest of a run; it has no run_id and configuration")
    scores = manifest.get("scores") or {}
    places = [free_place(page_of_score(output, i), force=force) for i in range(len(scores))]
    try:
        summaries = [summary_of_score(manifest, score) for score in scores] or [manifest]
        drawn = [_drawn(run, summary) for summary in summaries]
        pages = [render(facts) for facts, _ in drawn]
        if scores:
            found = zip(scores, drawn, places, strict=True)
            links = [ScorePage(score, facts, quote(at.name)) for score, (facts, _), at in found]
            pages.append(render_scores(manifest, links))
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ContractError(f"{run}: not a manifest that a report can be drawn from ({error})") from error
    for at, page in zip([*places, place], pages, strict=True):
        with written_aside(at, force=force) as aside:
            aside.write_text(page, encoding="utf-8")
    yield f"The report of run {manifest['run_id']} is in {output}."
    for _, notes in drawn:
        yield from notes


def _drawn(run: str, manifest: dict[str, Any]) -> tuple[RunFacts, list[str]]:
    """What a report says of one score, and what is left out."""
    paths = manifest["paths"] if isinstance(manifest.get("paths"), dict) else {}
    metrics = metrics_at(paths.get("metrics"), manifest.get("score"))
    if metrics is None:
        raise ContractError(
            f"{run}: its metrics, {paths.get('metrics') or 'none'}, are not on this machine; "
            "copy them to where the manifest says, or change paths.metrics"
        )
    facts, notes = _with_model(
        RunFacts(
            summary={key: value for key, value in manifest.items() if key not in _NOT_SUMMARY},
            metrics=metrics.frame,
            configuration=manifest["configuration"],
            versions=manifest.get("versions") or {},
            segments=segments_at(paths.get("segments")),
        ),
        local_place(str(model)) if (model := paths.get("model")) else None,
    )
    if (table := paths.get("segments")) and facts.segments is None:
        notes.insert(0, f"Left out, the table of segments: {table} is not on this machine.")
    return with_names(facts, families_of(facts.configuration)), notes


def _with_model(facts: RunFacts, folder: Path | None) -> tuple[RunFacts, list[str]]:
    """Curves and pairs, if the model is here and is still this run's."""
    if folder is None:
        return facts, []
    try:
        model = read_model(folder)
        maker = json_object(folder / RUN_FILE).get("run_id")
    except ContractError as error:
        return facts, [f"Left out, what the calibrator does: {error}."]
    if maker != facts.summary["run_id"]:
        return facts, [f"Left out, what the calibrator does: the model in {folder} is of run {maker} by now."]
    facts = replace(facts, dropped=model.groups.dropped)
    if isinstance(model.calibrator, Stages) and model.calibrator.stages:
        stages = model.calibrator
        facts = replace(
            facts, curves=largest_curves(curves_frame(stages), model.groups.names), pairs=pairs_frame(stages)
        )
        return facts, ["Left out, the loss as trees were added: no run leaves that."]
    return facts, []

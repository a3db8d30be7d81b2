"""The report of a run, drawn again from what it has left on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mcspark.cli.files import free_place, local_place, written_aside
from mcspark.cli.left import json_object, metrics_at, segments_at
from mcspark.core.model.stages import Stages
from mcspark.core.saved import RUN_FILE
from mcspark.errors import ContractError
from mcspark.ml.curves import curves_frame, pairs_frame
from mcspark.report.facts import RunFacts
from mcspark.report.names import families_of, with_names
from mcspark.report.page import render
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
    paths = manifest.get("paths") if isinstance(manifest.get("paths"), dict) else None
    metrics = metrics_at((paths or {}).get("metrics"))
    if metrics is None:
        raise ContractError(
            f"{run}: its metrics, {(paths or {}).get('metrics') or 'none'}, are not on this machine; "
            "copy them to where the manifest says, or change paths.metrics"
        )
    facts, notes = _with_model(
        RunFacts(
            summary={key: value for key, value in manifest.items() if key not in _NOT_SUMMARY},
            metrics=metrics.frame,
            configuration=manifest["configuration"],
            versions=manifest.get("versions") or {},
            segments=segments_at((paths or {}).get("segments")),
        ),
        local_place(str(model)) if (model := (paths or {}).get("model")) else None,
    )
    try:
        page = render(with_names(facts, families_of(facts.configuration)))
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ContractError(f"{run}: not a manifest that a report can be drawn from ({error})") from error
    with written_aside(place, force=force) as aside:
        aside.write_text(page, encoding="utf-8")
    yield f"The report of run {manifest['run_id']} is in {output}."
    if (table := (paths or {}).get("segments")) and facts.segments is None:
        yield f"Left out, the table of segments: {table} is not on this machine."
    yield from notes


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
        facts = replace(facts, curves=curves_frame(stages), pairs=pairs_frame(stages))
        return facts, ["Left out, the loss as trees were added: no run leaves that."]
    return facts, []

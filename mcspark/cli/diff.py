"""What differs between two models or two runs on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcspark.cli.files import free_place, local_place, written_aside
from mcspark.cli.left import json_object, metrics_at
from mcspark.cli.rows import about, batches_of, rows_at
from mcspark.cli.text import text_table
from mcspark.core.saved import RUN_FILE
from mcspark.errors import ContractError
from mcspark.identifiers import folded
from mcspark.report.difference import Difference, Moves, Side, difference, moves_of_rows, segments_told
from mcspark.report.difference_page import html, sentences, tables
from mcspark.report.metrics_table import MetricsTable
from mcspark.scorer import Scorer
from mcspark.scorer.scoring import read_model


def diff(
    a: str,
    b: str,
    rows: str | None = None,
    score: str | None = None,
    page: str | None = None,
    *,
    as_json: bool = False,
    force: bool = False,
) -> str:
    """The difference as text, or JSON.

    Parameters
    ----------
    a, b : str
        Each a model's folder, or the manifest of a run.
    rows : str, optional
        Parquet file or folder with the columns of both models: their calibrated scores are compared.
    score : str, optional
        Column of the score in ``rows``; each model's own if absent.
    page : str, optional
        HTML file to write.
    as_json : bool
    force : bool
        Replace the file.

    Raises
    ------
    ConfigurationError
        If ``page`` is there.
    ContractError
        If a side or the rows cannot be read, or rows are given and a model is not there.
    """
    place = free_place(page, force=force) if page else None
    (one, at_a, notes_a), (two, at_b, notes_b) = _side(a, "A"), _side(b, "B")
    notes = [*segments_told(one.model, two.model), *notes_a, *notes_b]
    if at_a is not None and at_a == at_b and one.name != two.name:
        notes.append(f"Both have the model in {at_a}: that of the later run, if there were two.")
    moves = _moves(one, two, rows, score) if rows else None
    found = difference(one, two, moves, notes)
    if place:
        with written_aside(place, force=force) as aside:
            aside.write_text(html(found, one, two), encoding="utf-8")
    return json.dumps(found.to_dict(), indent=1, ensure_ascii=False) if as_json else _text(found)


def _side(path: str, letter: str) -> tuple[Side, Path | None, list[str]]:
    """A side, where its model is, and what is left out of it."""
    place = local_place(path)
    if place.suffix != ".json" or place.name == "model.json":
        folder = place.parent if place.name == "model.json" else place
        return Side(path, read_model(place), _metrics_of_maker(folder)), folder.resolve(), []
    manifest = json_object(place)
    if not isinstance(manifest.get("run_id"), str):
        raise ContractError(f"{path}: neither a model's folder nor the manifest of a run (no run_id)")
    if manifest.get("scores"):
        raise ContractError(
            f"{path}: the manifest of a run of several scores; name the folder of one's model, such as "
            "scores/0000 in the folder of the model"
        )
    named = manifest.get("paths")
    paths: dict[str, Any] = named if isinstance(named, dict) else {}
    model, notes, folder = None, [], local_place(str(paths.get("model") or ""))
    try:
        model = read_model(folder) if paths.get("model") else None
    except ContractError as error:
        notes.append(f"The model of {letter} is left out: {error}.")
    metrics = metrics_at(paths.get("metrics"))
    if metrics is None:
        where = paths.get("metrics")
        notes.append(f"The metrics of {letter} are left out: {f'{where} is not here' if where else 'none'}.")
    return Side(f"run {manifest['run_id']}", model, metrics), folder.resolve() if model else None, notes


def _metrics_of_maker(folder: Path) -> MetricsTable | None:
    """The metrics of the run that has made a model, where its folder says which they are."""
    try:
        origin = json_object(folder / RUN_FILE)
        return metrics_at(origin.get("metrics"), origin.get("score"))
    except ContractError:
        return None


def _moves(a: Side, b: Side, rows: str, score: str | None) -> Moves:
    if a.model is None or b.model is None:
        raise ContractError("rows can be compared only where the models of both sides are on this machine")
    one, two = Scorer(a.model, score), Scorer(b.model, score)
    wanted = {folded(name) for name in (*one.columns, *two.columns)}
    with about(rows):
        table = rows_at(rows)
        columns = [name for name in table.schema.names if folded(name) in wanted]
        return moves_of_rows(one, two, batches_of(table, columns))


def _text(found: Difference) -> str:
    listed = [f"{t.caption}\n{text_table(t.head, t.body)}" for t in tables(found)]
    return "\n\n".join([f"A: {found.a}\nB: {found.b}", "\n".join(sentences(found)), *listed])

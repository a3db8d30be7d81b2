"""Why a score changed: one row of a table, or one that is given, as text, JSON or a picture."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from mcspark.cli.rows import about, rows_at
from mcspark.cli.text import Form, text_table
from mcspark.core.model.explanation import ExplainedStage, Explanation
from mcspark.errors import ConfigurationError, ContractError
from mcspark.runtime.files.untrusted import read_json
from mcspark.scorer import Scorer
from mcspark.scorer.columns import place_of

_SCALES = {"identity": "score", "logit": "log-odds"}


def explain(
    model: str, row: str | None, key: str | None, source: str | None, score: str | None, form: Form
) -> str:
    """The explanation of one row.

    Parameters
    ----------
    model : str
        Folder of the model.
    row : str, optional
        JSON object with the score and the attributes.
    key : str, optional
        JSON object of key columns and their values, of a row in ``source``.
    source : str, optional
        Parquet file or folder.
    score : str, optional
        Column of the score; the model's own if absent.
    form : Form

    Raises
    ------
    ConfigurationError
        If not exactly one of ``row`` and ``key`` is given, or it is no JSON object.
    ContractError
        If the model or the row cannot be read, or the row has not exactly the key.
    """
    if (row is None) == (key is None) or (key is None) != (source is None):
        raise ConfigurationError("give --row '{…}', or --key '{…}' with --input, and not both")
    scorer = Scorer.load(model, score)
    given = _object(row if row is not None else str(key), "--row" if key is None else "--key")
    if source is None:
        wanted = given
    else:
        with about(source):
            wanted = _row(given, source, scorer.columns)
    found = scorer.explain_one(wanted, readable=form is not Form.json)
    if form is Form.json:
        return json.dumps(found.to_dict(), indent=1, ensure_ascii=False)
    return _svg(found) if form is Form.svg else _text(found)


def _object(text: str, option: str) -> dict[str, Any]:
    try:
        plain = read_json(text)
    except ValueError as error:
        raise ConfigurationError(f"{option} is no JSON ({error}); quote it for the shell") from error
    if not isinstance(plain, dict) or not plain:
        raise ConfigurationError(f"{option} is no JSON object; give names and values")
    return plain


def _row(key: dict[str, Any], source: str, columns: tuple[str, ...]) -> dict[str, Any]:
    table = rows_at(source)
    names = table.schema.names
    wanted = {name: names[place_of(names, name)] for name in columns}
    test = None
    for name, value in key.items():
        field = table.schema.field(names[place_of(names, name)])
        one = ds.field(field.name) == _key_value(name, value, field.type)
        test = one if test is None else test & one
    try:
        rows = table.scanner(columns=sorted(set(wanted.values())), filter=test).head(2).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise ContractError(f"the row cannot be read ({error})") from error
    if len(rows) != 1:
        raise ContractError(f"there is {'more than one row' if rows else 'no row'} with the key {key}")
    return {name: rows[0][place] for name, place in wanted.items()}


def _key_value(name: str, value: Any, kind: Any) -> Any:
    try:
        return pa.scalar(value).cast(kind)
    except (OverflowError, pa.ArrowException) as error:
        raise ContractError(f"the key {name!r} is {kind} there, and {value!r} is none ({error})") from error


def _text(found: Explanation) -> str:
    change = found.calibrated - found.score
    parts = [f"Score {found.score:.6f} → calibrated {found.calibrated:.6f} ({change:+.6f})"]
    if found.groups:
        parts.append("In the groups " + ", ".join(found.groups))
    if not found.stages:
        parts.append("The model changes no score.")
    for i, stage in enumerate(found.stages, start=1):
        parts.append(_stage(stage, i))
    return "\n\n".join(parts)


def _stage(stage: ExplainedStage, number: int) -> str:
    scale = _SCALES[stage.link]
    body = [("comes in", "", f"{stage.start:.6f}")]
    at = stage.start
    for step in stage.steps:
        if step.kind != "rounding":
            at += step.value
            body.append((step.name, f"{step.value:+.6f}", f"{at:.6f}"))
    body.append(("in all, goes out", f"{stage.end - stage.start:+.6f}", f"{stage.end:.6f}"))
    table = text_table(("step", f"adds ({scale})", "makes"), body)
    return f"Stage {number}: score {stage.before:.6f} → {stage.after:.6f}\n{table}"


def _svg(found: Explanation) -> str:
    from mcspark.report.plots.explanation import explanation_steps  # noqa: PLC0415  (slow to import)
    from mcspark.report.svg import document  # noqa: PLC0415

    if not found.stages:
        raise ContractError("the model changes no score: there is nothing to draw")
    largest = max(range(len(found.stages)), key=lambda i: abs(found.stages[i].after - found.stages[i].before))
    stage, number = found.stages[largest], largest + 1
    return document(explanation_steps(stage, number), "explanation", _words(stage))


def _words(stage: ExplainedStage) -> str:
    """The steps as they are read aloud."""
    steps = ", ".join(f"{step.name} {step.value:+.4f}" for step in stage.steps if step.kind != "rounding")
    scale = _SCALES[stage.link]
    return f"Bars from {stage.start:.4f} to {stage.end:.4f} ({scale}), one a step: {steps or 'none'}."

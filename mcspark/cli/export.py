"""A model for a database or another program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from mcspark.cli.files import free_place, written_aside
from mcspark.cli.text import Target
from mcspark.errors import ConfigurationError
from mcspark.export.onnx_model import to_onnx
from mcspark.export.plain import to_plain
from mcspark.export.sql import DIALECTS, to_sql
from mcspark.scorer.scoring import read_model


def export(
    model: str,
    to: Target,
    dialect: str | None = None,
    table: str | None = None,
    key: Sequence[str] = (),
    view: str | None = None,
    output: str | None = None,
    *,
    force: bool = False,
) -> Iterator[str]:
    """The text, statement by statement; or, where a file is named, what was written there.

    Parameters
    ----------
    model : str
        Folder of the model.
    to : Target
    dialect, table, key, view
        Of SQL: see :func:`mcspark.export.sql.to_sql`.
    output : str, optional
        File to write; ONNX, which is no text, needs one.
    force : bool
        Replace what is there.

    Raises
    ------
    ConfigurationError
        If the model cannot be exported so, SQL has no dialect, table or key, ONNX has no file, or the file is
        there already.
    ContractError
        If the model cannot be read.
    """
    if to is Target.onnx and output is None:
        raise ConfigurationError("ONNX is no text: name a file by --output model.onnx")
    place = free_place(output, force=force) if output else None
    if to is Target.onnx:
        written = to_onnx(read_model(model))
    else:
        lines = _lines(model, to, dialect, table, key, view)
        if place is None:
            yield from lines
            return
        written = "".join(f"{line}\n" for line in lines).encode()
    assert place is not None
    with written_aside(place, force=force) as aside:
        aside.write_bytes(written)
    yield f"{len(written):,} bytes written to {output}"


def _lines(
    model: str, to: Target, dialect: str | None, table: str | None, key: Sequence[str], view: str | None
) -> Iterator[str]:
    if to is Target.json:
        yield json.dumps(to_plain(read_model(model)), ensure_ascii=False)
        return
    if not (dialect and table and key):
        raise ConfigurationError(f"SQL needs --dialect ({', '.join(DIALECTS)}), --table and --key")
    for statement in to_sql(read_model(model), dialect, table, key, view):
        yield f"{statement};"

"""A model as text for a database or another program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from mcspark.cli.text import Target
from mcspark.errors import ConfigurationError
from mcspark.export.plain import to_plain
from mcspark.export.sql import DIALECTS, to_sql
from mcspark.scorer.scoring import read_model


def export(
    model: str, to: Target, dialect: str | None, table: str | None, key: Sequence[str], view: str | None
) -> Iterator[str]:
    """The text, statement by statement.

    Raises
    ------
    ConfigurationError
        If the model cannot be exported so, or SQL has no dialect, table or key.
    ContractError
        If the model cannot be read.
    """
    if to is Target.json:
        yield json.dumps(to_plain(read_model(model)), ensure_ascii=False)
        return
    if not (dialect and table and key):
        raise ConfigurationError(f"SQL needs --dialect ({', '.join(DIALECTS)}), --table and --key")
    for statement in to_sql(read_model(model), dialect, table, key, view):
        yield f"{statement};"

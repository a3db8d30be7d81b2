"""Names and values as databases write them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mcspark.errors import ConfigurationError

if TYPE_CHECKING:
    from sqlglot.expressions import Table

SPOKEN = "duckdb"
"""The dialect that this program writes; sqlglot translates it."""


def quoted(name: str) -> str:
    """The name of a column."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: float | str, dialect: str = SPOKEN) -> str:
    """A text, a whole number or a double; texts are escaped in more ways than one."""
    if isinstance(value, str):
        from sqlglot.expressions import Literal  # noqa: PLC0415

        return Literal.string(value).sql(dialect=dialect)
    if isinstance(value, float):
        text = repr(value)  # with an exponent it is a double everywhere, and no decimal
        return text if "e" in text else f"{text}e0"
    return str(value)


def row(values: Iterable[Any], dialect: str) -> str:
    """A row after VALUES."""
    return f"({', '.join(literal(value, dialect) for value in values)})"


def table_named(name: str, dialect: str) -> Table:
    """The name of a table or view, with its schema and catalog if it has them.

    Raises
    ------
    ConfigurationError
        If that dialect does not read it as one.
    """
    from sqlglot import exp, parse_one  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    try:
        found = parse_one(name, into=exp.Table, dialect=dialect)
    except SqlglotError:
        raise ConfigurationError(
            f"{name!r} is no name of a table in {dialect}; quote the parts of it as that database does"
        ) from None
    for part in found.find_all(exp.Identifier):
        if not re.fullmatch(r"[A-Za-z_]\w*", part.name):
            part.set("quoted", True)
    return found


def with_suffix(table: Table, suffix: str) -> Table:
    """A name beside the table's.

    Raises
    ------
    ConfigurationError
        If it is a function of tables, which has no name.
    """
    found = table.copy()
    if not table.name:
        raise ConfigurationError(
            f"{table.sql(dialect=SPOKEN)} has no name of its own; name the view by --view"
        )
    found.this.set("this", f"{table.name}{suffix}")
    return found

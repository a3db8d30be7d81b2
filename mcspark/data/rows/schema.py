"""Columns and types that a table must have, checked on its schema alone before any job runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import structlog
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from mcspark.config import AttributeTable, LabelTable, ScoredTable
from mcspark.config.tables import OF_REJECTED
from mcspark.data.formats.names import close_to, difference
from mcspark.errors import ContractError
from mcspark.identifiers import folded

log = structlog.get_logger(__name__)

_WORKING = "__"


def check_scored_schema(
    df: DataFrame,
    scored: ScoredTable,
    *,
    source: str,
    with_label: bool = True,
    keep: Sequence[str] = (),
    valued: Sequence[str] = (),
) -> None:
    """Refuse a scored table without its columns, or with types that no explicit cast may change.

    Parameters
    ----------
    df : DataFrame
    scored : ScoredTable
    source : str
        Name of the table, for messages.
    with_label : bool
        Whether the label must be there.
    keep : sequence of str
        Further columns that must be there.
    valued : sequence of str
        Columns of which each value is a group.

    Raises
    ------
    ContractError
        With all problems at once.
    """
    label = scored.label if with_label else None
    names = [name for name in (*scored.all_scores, label, scored.weight) if name]
    numbers = [name for name in names if scored.classes is None or name != label]
    problems = _missing(df.schema, [*scored.key, *names, *keep])
    if scored.classes is not None and label in df.columns and not _is_plain(df.schema[label].dataType):
        kind = df.schema[label].dataType.simpleString()
        problems.append(f"~ {label} {kind}: a class is text, a number or a date; store it as one of these")
    problems += _bad_keys(df.schema, scored.key) + _bad_values(df.schema, valued)
    for name in numbers:
        if name in df.columns and not _is_number(df.schema[name].dataType, scored.format):
            problems.append(_no_number(df.schema, name))
    latest = scored.dedupe.latest_by if scored.dedupe else None
    if latest in df.columns and not _is_plain(df.schema[latest].dataType):
        kind = df.schema[latest].dataType.simpleString()
        problems.append(f"~ {latest} {kind}: not ordered; let dedupe.latest_by name a number, date or time")
    problems += [
        f"! {name}: the rejected rows have another column of this name; rename it"
        for name in scored.key
        if folded(name) in OF_REJECTED
    ]
    problems += _working_names([*scored.key, *names, *keep])
    _refuse(source, problems)
    _log_unused(source, df.columns, [*scored.key, *names, *keep])


def check_attribute_schema(
    df: DataFrame,
    table: AttributeTable,
    *,
    source: str,
    needed: Sequence[str] = (),
    numeric: Sequence[str] = (),
    valued: Sequence[str] = (),
    scored_schema: StructType,
) -> None:
    """Refuse an attribute table without its columns, or whose key does not compare with the scored table's.

    Keys compare when both are text, both are dates, both are decimals of one scale, or both are integers of
    any width: no value changes then. Everything else would need a cast, and the text '01' is not the
    number 1.

    Parameters
    ----------
    df : DataFrame
    table : AttributeTable
    source : str
        Name of the table, for messages.
    needed : sequence of str
        Columns that the groups use.
    numeric : sequence of str
        Those of them that must be numbers (or text in CSV): with bins or ``divide_by``.
    valued : sequence of str
        Those of them of which each value is a group.
    scored_schema : StructType
        Of the scored table, whose key columns have the same names.

    Raises
    ------
    ContractError
        With all problems at once.
    """
    problems = _working_names(needed) + _bad_values(df.schema, valued)
    for name in numeric:
        if name in df.columns and not _is_number(df.schema[name].dataType, table.format):
            kind = df.schema[name].dataType.simpleString()
            problems.append(f"~ {name} {kind} -> number: has bins or divide_by; store it as a number")
    _check_joined(df, table.key, needed, problems, source, scored_schema)


def refuse_label_twice(scored_schema: StructType, name: str, *, source: str) -> None:
    """Refuse a scored table with a column of the name that labels of another table will have beside it."""
    twin = next((other for other in scored_schema.names if folded(other) == folded(name)), None)
    if twin:
        raise ContractError(
            f"{source}: has the column {twin}, and the configuration a table of labels; leave labels out to "
            "read the column, or call the label otherwise by scored.label"
        )


def check_label_schema(df: DataFrame, table: LabelTable, *, source: str, scored_schema: StructType) -> None:
    """Refuse a table of labels without its columns, or whose key does not compare with the scored table's.

    Parameters
    ----------
    df : DataFrame
    table : LabelTable
    source : str
        Name of the table, for messages.
    scored_schema : StructType
        Of the scored table, whose key columns have the same names.

    Raises
    ------
    ContractError
        With all problems at once.
    """
    problems = []
    if table.label in df.columns and not has_number(df.schema, table.label, table.format):
        problems.append(_no_number(df.schema, table.label))
    _check_joined(df, table.key, [table.label], problems, source, scored_schema)


def _check_joined(
    df: DataFrame,
    key: Sequence[str],
    needed: Sequence[str],
    problems: list[str],
    source: str,
    scored_schema: StructType,
) -> None:
    """Refuse a table that is joined to the scored one for its key, its columns, or these problems."""
    missing = _missing(df.schema, [*key, *needed]) + _bad_keys(df.schema, key)
    _refuse(source, [*missing, *problems, *_other_keys(df.schema, key, scored_schema)])
    _log_unused(source, df.columns, [*key, *needed])


def resolve_columns(
    needed: Iterable[str],
    scored_columns: Sequence[str],
    key: Sequence[str],
    tables: Sequence[DataFrame],
    label: str | None = None,
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Which table each group column comes from: the only one that has a column of its name.

    What the scored table calls its score, its label or its weight makes no difference, nor does the job: a
    name that stands in two tables is refused by all jobs alike, also where it differs in capitals.

    Parameters
    ----------
    needed : iterable of str
        Columns that the groups use.
    scored_columns : sequence of str
        All columns of the scored table.
    key : sequence of str
        Those that the attribute tables have too, with the same values.
    tables : sequence of DataFrame
        The attribute tables.
    label : str, optional
        The label of the scored table, of which no group is made.

    Returns
    -------
    from_scored : tuple of str
        Columns that only the scored table has, its key included.
    from_tables : tuple of tuple of str
        Columns to take from each attribute table.

    Raises
    ------
    ContractError
        If a column is nowhere, in two tables so that its meaning depends on their order, or the label.
    """
    found: list[list[str]] = [[] for _ in (scored_columns, *tables)]
    columns = [list(scored_columns), *(table.columns for table in tables)]
    problems = []
    for name in dict.fromkeys(needed):
        spelled = [[c for c in names if folded(c) == folded(name)] for names in columns]
        owners = [i for i, names in enumerate(spelled) if names]
        if name in key:
            found[0].append(name)
        elif label is not None and folded(name) == folded(label):
            problems.append(
                f"! {name}: a group of the label, which nobody knows of the rows to score; rename it"
            )
        elif len(owners) > 1:
            others = sorted({other for names in spelled for other in names} - {name})
            also = f" (also as {', '.join(others)})" if others else ""
            problems.append(
                f"! {name}: in more than one of the tables{also}; rename it or leave it out of all but one"
            )
        elif owners and name in columns[owners[0]]:
            found[owners[0]].append(name)
        else:
            problems.append(_missing_line(name, sorted({c for names in columns for c in names})))
    _refuse("columns of the groups", problems)
    return tuple(found[0]), tuple(map(tuple, found[1:]))


def _missing(schema: StructType, names: Sequence[str]) -> list[str]:
    return [_missing_line(name, schema.names) for name in dict.fromkeys(names) if name not in schema.names]


def _missing_line(name: str, present: Sequence[str]) -> str:
    alike = {other: words for other in present if (words := difference(name, other))}
    if alike:
        other, words = next(iter(alike.items()))
        return f"- {name}: missing, but there is {other!r}: {words}; write the name as the table does"
    close = close_to(name, present)
    return f"- {name}: missing" + (f", did you mean {' or '.join(close)}?" if close else "")


def _working_names(names: Sequence[str]) -> list[str]:
    return [
        f"! {name}: names that begin with {_WORKING} are kept for working columns; rename it"
        for name in dict.fromkeys(names)
        if name.startswith(_WORKING)
    ]


def _bad_keys(schema: StructType, key: Sequence[str]) -> list[str]:
    return [
        f"~ {name} {schema[name].dataType.simpleString()}: a key is text, an integer, a decimal or a date"
        for name in key
        if name in schema.names and _family(schema[name].dataType) is None
    ]


def _other_keys(schema: StructType, key: Sequence[str], scored: StructType) -> list[str]:
    return [
        f"~ key {name} {schema[name].dataType.simpleString()}, but {scored[name].dataType.simpleString()} in "
        "the scored table: nothing is cast; store both with one type"
        for name in key
        if name in schema.names and name in scored.names
        if _family(schema[name].dataType) != _family(scored[name].dataType)
    ]


def _no_number(schema: StructType, name: str) -> str:
    kind = schema[name].dataType.simpleString()
    return f"~ {name} {kind} -> double: not numeric; store it as a number, or cast it in a view"


def _family(kind: DataType) -> str | None:
    if isinstance(kind, StringType):
        return "text"
    if isinstance(kind, IntegralType):
        return "integer"
    if isinstance(kind, DecimalType):
        return f"decimal of scale {kind.scale}"
    return "date" if isinstance(kind, DateType) else None


def _bad_values(schema: StructType, names: Sequence[str]) -> list[str]:
    return [
        f"~ {name} {schema[name].dataType.simpleString()}: groups by value need text, numbers or dates; "
        "store it as one of these, or write predicates"
        for name in names
        if name in schema.names and not _is_plain(schema[name].dataType)
    ]


def _is_plain(kind: DataType) -> bool:
    """Whether the values are of one part, have an order, and can be told apart as text."""
    return isinstance(
        kind, NumericType | StringType | DateType | TimestampType | TimestampNTZType | BooleanType
    )


def has_number(schema: StructType, name: str, table_format: str) -> bool:
    """Whether there is a column of this name, and it holds numbers."""
    return name in schema.names and _is_number(schema[name].dataType, table_format)


def _is_number(kind: DataType, table_format: str) -> bool:
    return isinstance(kind, NumericType) or (table_format == "csv" and isinstance(kind, StringType))


def _refuse(source: str, problems: Sequence[str]) -> None:
    if problems:
        raise ContractError(
            f"{source}: {len(problems)} problem(s) with the columns:\n  " + "\n  ".join(problems)
        )


def _log_unused(source: str, present: Sequence[str], used: Sequence[str]) -> None:
    unused = sorted(set(present) - set(used))
    if unused:
        log.info("columns not used", table=source, columns=unused)

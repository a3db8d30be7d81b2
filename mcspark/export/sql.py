"""A calibrator as SQL: its tables, and one view over a table of scores and attributes.

A row gets a code in each family of groups, its bin at each stage, and then a few look-ups by these: there is
no aggregation, and each look-up finds one number. So one row is scored without reading the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mcspark.core.model.stages import LOGIT_EPS, Stage
from mcspark.core.saved import SavedModel
from mcspark.errors import ConfigurationError
from mcspark.export.codes import code_of, has_words, is_cut, word_join, word_rows
from mcspark.export.lookups import Lookup, lookups
from mcspark.export.plain import additive
from mcspark.export.words import SPOKEN, literal, quoted, row, table_named, with_suffix
from mcspark.identifiers import folded

if TYPE_CHECKING:
    from sqlglot.expressions import Table

DIALECTS = ("duckdb", "postgres", "spark", "snowflake", "bigquery", "trino", "sqlite")
SLOTS = 1024
"""A score's slot, ``floor(1024 score)``, is exact; it finds the few bins that a score may be in."""

FAR_ODDS = 700.0
"""Log-odds beyond which a score is 0 or 1; it is so to 1e-300."""

_WITH_LISTS = "duckdb"
"""The dialect where taking a number from a list costs less than a join."""

_WITH_INDEXES = ("postgres", "sqlite")
"""Dialects that plan look-ups well where an index says that they find one row."""

_OWN = "mcspark_"
"""What the names of the tables, and of the columns within the view, begin with."""

_ROWS = 500
_IN_LIST, _IN_TABLE = 2**15, 2**13
"""Rows of a look-up up to which it may be merged with others: a table is written a row at a time."""

_TABLES = {
    "mcspark_word": "family INT, word TEXT, code INT",
    "mcspark_bin": "stage INT, slot DOUBLE, bin INT, low DOUBLE, high DOUBLE, base DOUBLE",
    "mcspark_term": "lookup INT, place BIGINT, term DOUBLE",
}
_UNIQUE = {
    "mcspark_word": "family, word",
    "mcspark_bin": "stage, slot, bin",
    "mcspark_term": "lookup, place",
}


def to_sql(
    model: SavedModel, dialect: str, table: str, key: Sequence[str], view: str | None = None
) -> Iterator[str]:
    """The statements that make the tables and the view, each without a semicolon.

    Parameters
    ----------
    model : SavedModel
    dialect : str
        One of :data:`DIALECTS`.
    table : str
        Name of the table with scores and attributes, as that database spells it.
    key : sequence of str
        Columns that tell the rows of the table apart; the view has them, and the calibrated score.
    view : str, optional
        Name of the view; the table's with ``_calibrated`` after it if absent.

    Raises
    ------
    ConfigurationError
        If the calibrator is not made of trees, the dialect is unknown, a condition has no meaning there, or a
        name cannot be used.
    """
    from sqlglot import parse_one  # noqa: PLC0415

    stages = additive(model).stages
    if dialect not in DIALECTS:
        raise ConfigurationError(f"unknown dialect {dialect!r}; known are {', '.join(DIALECTS)}")

    def written(text: str) -> str:
        return text if dialect == SPOKEN else parse_one(text, dialect=SPOKEN).sql(dialect=dialect)

    groups, lists = model.groups.learned, dialect == _WITH_LISTS
    found = [lookups(groups, stage.form, _IN_LIST if lists else _IN_TABLE) for stage in stages]
    source = table_named(table, dialect)
    place = table_named(view, dialect) if view else with_suffix(source, "_calibrated")
    _check_names(source, place)
    query = _query(model, found, dialect, source.sql(dialect=SPOKEN), _key(model, key))
    rows: dict[str, Iterable[tuple[Any, ...]]] = {
        "mcspark_word": word_rows(groups.families),
        "mcspark_bin": (values for s, stage in enumerate(stages) for values in _bins(s, stage)),
        "mcspark_term": _terms(found, lists),
    }
    for name, columns in _TABLES.items():
        yield written(f"CREATE TABLE {name} ({columns})")
        yield from _inserted(name, [row(values, dialect) for values in rows[name]])
        if dialect in _WITH_INDEXES:
            yield f"CREATE UNIQUE INDEX {name}_place ON {name} ({_UNIQUE[name]})"
            yield f"ANALYZE {name}"
    if lists:
        yield "CREATE TABLE mcspark_list (stage INT, terms DOUBLE[])"
        yield from _inserted("mcspark_list", [_list(s, some) for s, some in enumerate(found)])
    yield written(f"CREATE VIEW {place.sql(dialect=SPOKEN)} AS {query}")


def _check_names(source: Table, place: Table) -> None:
    for found, option in ((source, "--table"), (place, "--view")):
        if folded(found.name).startswith(_OWN):
            raise ConfigurationError(
                f"{option} cannot be {found.name}: names with {_OWN} are those of the tables of the model"
            )
    names = [folded(found.sql(dialect=SPOKEN, identify=True)) for found in (source, place)]
    if names[0] == names[1]:
        raise ConfigurationError(
            f"the view cannot be called {place.name} as the table is; give another --view"
        )


def _key(model: SavedModel, key: Sequence[str]) -> Sequence[str]:
    result = model.columns["predictionCol"]
    names = [folded(name) for name in (*key, result)]
    if own := [name for name in key if not name or folded(name).startswith(_OWN)]:
        raise ConfigurationError(
            f"{own[0]!r} cannot be a key: names with {_OWN} are those of the view itself"
        )
    if len(set(names)) < len(names):
        raise ConfigurationError(
            f"the view cannot have two columns of one name: the key is {', '.join(key)}, and the calibrated "
            f"score is called {result}"
        )
    return key


def _inserted(name: str, rows: list[str]) -> Iterator[str]:
    for start in range(0, len(rows), _ROWS):
        yield f"INSERT INTO {name} VALUES {', '.join(rows[start : start + _ROWS])}"


def _terms(found: list[list[Lookup]], lists: bool) -> Iterator[tuple[Any, ...]]:
    every = (lookup for some in found for lookup in some)
    for i, lookup in enumerate(every):
        if not (lists and lookup.dense):
            for place, term in zip(lookup.places.tolist(), lookup.terms.tolist(), strict=True):
                yield (i, place, term)


def _list(stage: int, found: list[Lookup]) -> str:
    terms = [term for lookup in found if lookup.dense for term in lookup.terms.tolist()]
    return f"({stage}, '[{', '.join(map(repr, terms))}]')"


def _bins(number: int, stage: Stage) -> Iterator[tuple[Any, ...]]:
    thresholds = stage.form.thresholds
    first = np.searchsorted(thresholds, np.arange(SLOTS + 2) / SLOTS, side="left")
    edges = [-1.0, *thresholds.tolist(), 2.0]
    for slot in range(SLOTS + 1):
        for b in range(int(first[slot]), int(first[slot + 1]) + 1):
            base = float(stage.form.base[b]) + stage.form.constant
            yield (number, float(slot), b, max(edges[b], -1.0), min(edges[b + 1], 2.0), base)


def _query(model: SavedModel, found: list[list[Lookup]], dialect: str, table: str, key: Sequence[str]) -> str:
    families = dict(enumerate(model.groups.learned.families))
    used = sorted({i for some in found for lookup in some for i in lookup.families})
    numbers = [i for i in used if is_cut(families[i])]
    as_double = "".join(f", CAST(t.{quoted(families[i].column)} AS DOUBLE) AS mcspark_n{i}" for i in numbers)
    source = f"(SELECT t.*{as_double} FROM {table} AS t)" if numbers else table
    codes = ""
    for i in used:
        column = f"t.mcspark_n{i}" if i in numbers else f"t.{quoted(families[i].column)}"
        codes += f", {code_of(families[i], dialect, column, f'w{i}.code')} AS mcspark_c{i}"
    joins = "".join(word_join(i, families[i]) for i in used if has_words(families[i]))
    score = f"t.{quoted(model.columns['scoreCol'])}"
    parts = [
        f"mcspark_rated0 AS (SELECT {_of(key, 't')}{codes}, CASE WHEN {score} >= 0e0 AND {score} <= 1e0 "
        f"THEN {score} END AS mcspark_f FROM {source} AS t{joins})"
    ]
    first = 0
    for s, stage in enumerate(additive(model).stages):
        terms, joins = _look_ups(s, first, found[s], dialect == _WITH_LISTS)
        parts += _stage(s, stage, key, "".join(f", r.mcspark_c{i}" for i in used), terms, joins)
        first += len(found[s])
    result = quoted(model.columns["predictionCol"])
    return (
        f"WITH {', '.join(parts)} SELECT {_of(key, 'r')}, r.mcspark_f AS {result} "
        f"FROM mcspark_rated{len(found)} AS r"
    )


def _of(key: Sequence[str], table: str) -> str:
    return ", ".join(f"{table}.{quoted(name)}" for name in key)


def _look_ups(stage: int, first: int, found: list[Lookup], lists: bool) -> tuple[str, str]:
    """The sum of the terms of a row, and the joins that it needs."""
    terms, joins, behind = "", "", 1
    for i, lookup in enumerate(found, start=first):
        # The place among all combinations of a few large families may need 64 bits.
        code = "r.mcspark_c{0}" if lookup.dense else "CAST(r.mcspark_c{0} AS BIGINT)"
        steps = zip(lookup.families, lookup.steps, strict=True)
        parts = ["r.mcspark_bin"] if lookup.by_bin else []
        place = " + ".join([*parts, *(f"{code.format(family)} * {step}" for family, step in steps)])
        if lists and lookup.dense:
            terms += f" + a.terms[{place} + {behind}]"
            behind += len(lookup.terms)
        else:
            terms += f" + COALESCE(l{i}.term, 0e0)"
            joins += f" LEFT JOIN mcspark_term AS l{i} ON l{i}.lookup = {i} AND l{i}.place = {place}"
    if behind > 1:
        joins = f" CROSS JOIN (SELECT terms FROM mcspark_list WHERE stage = {stage}) AS a{joins}"
    return terms, joins


def _stage(s: int, stage: Stage, key: Sequence[str], codes: str, terms: str, joins: str) -> list[str]:
    score, total = "r.mcspark_f", "r.mcspark_z"
    before = score
    after = f"CASE WHEN {total} < 0e0 THEN 0e0 WHEN {total} > 1e0 THEN 1e0 ELSE {total} END"
    if stage.link == "logit":
        low, high = literal(LOGIT_EPS), literal(1 - LOGIT_EPS)
        inner = f"(CASE WHEN {score} < {low} THEN {low} WHEN {score} > {high} THEN {high} ELSE {score} END)"
        before = f"LN({inner} / (1e0 - {inner}))"
        # Beyond the largest exponent some engines fail, and do not round to 0 and infinity.
        far = literal(FAR_ODDS)
        after = (
            f"CASE WHEN {total} < -{far} THEN 0e0 WHEN {total} > {far} THEN 1e0 "
            f"ELSE 1e0 / (1e0 + EXP(-{total})) END"
        )
    kept = f"{_of(key, 'r')}{codes}"
    return [
        f"mcspark_placed{s} AS (SELECT {kept}, r.mcspark_f, b.bin AS mcspark_bin, b.base AS mcspark_base "
        f"FROM mcspark_rated{s} AS r LEFT JOIN mcspark_bin AS b ON b.stage = {s} "
        f"AND b.slot = FLOOR(r.mcspark_f * {SLOTS}) AND r.mcspark_f > b.low AND r.mcspark_f <= b.high)",
        f"mcspark_moved{s} AS (SELECT {kept}, {before} + r.mcspark_base{terms} AS mcspark_z "
        f"FROM mcspark_placed{s} AS r{joins})",
        f"mcspark_rated{s + 1} AS (SELECT {kept}, {after} AS mcspark_f FROM mcspark_moved{s} AS r)",
    ]

"""A calibrator as SQL: its tables, and one view over a table of scores and attributes.

Rows become codes of groups, distinct codes become signatures, and what depends on the signature and the bin
alone is summed once for each: no engine needs a join with more than one row for each group that a row is in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mcspark.core.cells.groups import Family, decimal_ratio
from mcspark.core.model.stages import LOGIT_EPS, Stage
from mcspark.core.saved import SavedModel
from mcspark.errors import ConfigurationError
from mcspark.export.conditions import condition
from mcspark.export.plain import additive

DIALECTS = ("duckdb", "postgres", "spark", "snowflake", "bigquery", "trino", "sqlite")
SLOTS = 1024
"""A score's slot, ``floor(1024 score)``, is exact; it finds the few bins that a score may be in."""

FAR_ODDS = 700.0
"""Log-odds beyond which a score is 0 or 1; it is so to 1e-300."""

_SPOKEN = "duckdb"
"""The dialect that this module writes; sqlglot translates it."""

_ROWS = 500
_TABLES = {
    "mcspark_category": "family INT, grp INT, word TEXT, number DOUBLE",
    "mcspark_intersection": "one INT, two INT, grp INT",
    "mcspark_bin": "stage INT, slot DOUBLE, bin INT, low DOUBLE, high DOUBLE, base DOUBLE",
    "mcspark_curve": "stage INT, grp INT, bin INT, term DOUBLE",
    "mcspark_pair": "stage INT, one INT, two INT, term DOUBLE",
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
        If the calibrator is not made of trees, the dialect is unknown, or a condition has no meaning there.
    """
    from sqlglot import parse_one  # noqa: PLC0415

    stages = additive(model).stages
    if dialect not in DIALECTS:
        raise ConfigurationError(f"unknown dialect {dialect!r}; known are {', '.join(DIALECTS)}")

    def written(text: str) -> str:
        return text if dialect == _SPOKEN else parse_one(text, dialect=_SPOKEN).sql(dialect=dialect)

    query = _query(model, stages, dialect, table, key)
    rows = {name: list(found) for name, found in _rows(model, stages).items()}
    for name, columns in _TABLES.items():
        yield written(f"CREATE TABLE {name} ({columns})")
        for start in range(0, len(rows[name]), _ROWS):
            some = rows[name][start : start + _ROWS]
            values = ", ".join(f"({', '.join(map(_literal, row))})" for row in some)
            yield f"INSERT INTO {name} VALUES {values}"
    view = view or f"{table}_calibrated"
    yield written(f"CREATE VIEW {view} AS {query}")


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        text = repr(value)  # with an exponent it is a double everywhere, and no decimal
        return text if "e" in text else f"{text}e0"
    return str(value)


def _rows(model: SavedModel, stages: tuple[Stage, ...]) -> dict[str, Iterator[tuple[Any, ...]]]:
    return {
        "mcspark_category": _categories(model.groups.families),
        "mcspark_intersection": (
            (i, j, len(model.groups.base_names) + k) for k, (i, j) in enumerate(model.groups.pairs)
        ),
        "mcspark_bin": (row for s, stage in enumerate(stages) for row in _bins(s, stage)),
        "mcspark_curve": (
            (s, int(g), int(b), float(stage.form.curves[g, b]))
            for s, stage in enumerate(stages)
            for g, b in zip(*np.nonzero(stage.form.curves), strict=True)
        ),
        "mcspark_pair": (
            (s, i, j, value)
            for s, stage in enumerate(stages)
            for (i, j), value in zip(stage.form.pairs.tolist(), stage.form.pair_values.tolist(), strict=True)
        ),
    }


def _categories(families: tuple[Family, ...]) -> Iterator[tuple[Any, ...]]:
    group = 0
    for i, family in enumerate(families):
        for category in family.categories:
            if family.kind in ("value", "divide"):
                text = isinstance(category, str)
                yield (i, group, category, None) if text else (i, group, None, float(category))
            group += 1


def _bins(number: int, stage: Stage) -> Iterator[tuple[Any, ...]]:
    thresholds = stage.form.thresholds
    first = np.searchsorted(thresholds, np.arange(SLOTS + 2) / SLOTS, side="left")
    edges = [-1.0, *thresholds.tolist(), 2.0]
    for slot in range(SLOTS + 1):
        for b in range(int(first[slot]), int(first[slot + 1]) + 1):
            base = float(stage.form.base[b]) + stage.form.constant
            yield (number, float(slot), b, max(edges[b], -1.0), min(edges[b + 1], 2.0), base)


def _query(model: SavedModel, stages: tuple[Stage, ...], dialect: str, table: str, key: Sequence[str]) -> str:
    families = model.groups.families
    score = f"t.{_quoted(model.columns['scoreCol'])}"
    codes = [_code(i, family, model, dialect) for i, family in enumerate(families)] or ["-1"]
    names = [f"mcspark_g{i}" for i in range(len(codes))]
    listed = ", ".join(names)
    joins = " ".join(join for i, family in enumerate(families) if (join := _join(i, family)))
    coded = ", ".join(f"{code} AS {name}" for code, name in zip(codes, names, strict=True))
    kept = ", ".join(f"t.{_quoted(name)}" for name in key)
    same = " AND ".join(f"k.{n} = r.{n}" for n in names)
    each = " UNION ALL ".join(f"SELECT sid, {n} AS grp FROM signatures WHERE {n} >= 0" for n in names)
    parts = [
        f"coded AS (SELECT {kept}, CASE WHEN {score} >= 0e0 AND {score} <= 1e0 THEN {score} END AS f, "
        f"{coded} FROM {table} AS t {joins})",
        f"signatures AS (SELECT ROW_NUMBER() OVER (ORDER BY {listed}) AS sid, {listed} "
        f"FROM (SELECT DISTINCT {listed} FROM coded) AS d)",
        f"families AS ({each})",
        "members AS (SELECT sid, grp FROM families UNION ALL SELECT a.sid, i.grp FROM families AS a "
        "JOIN families AS b ON a.sid = b.sid "
        "JOIN mcspark_intersection AS i ON i.one = a.grp AND i.two = b.grp)",
        "pairs AS (SELECT a.sid, p.stage, SUM(p.term) AS term FROM members AS a "
        "JOIN members AS b ON a.sid = b.sid "
        "JOIN mcspark_pair AS p ON p.one = a.grp AND p.two = b.grp GROUP BY a.sid, p.stage)",
        f"rated0 AS (SELECT {_of(key, 'r')}, r.f, k.sid FROM coded AS r JOIN signatures AS k ON {same})",
    ]
    for s, stage in enumerate(stages):
        parts += _stage(s, stage, key)
    result = _quoted(model.columns["predictionCol"])
    return f"WITH {', '.join(parts)} SELECT {_of(key, 'r')}, r.f AS {result} FROM rated{len(stages)} AS r"


def _of(key: Sequence[str], table: str) -> str:
    return ", ".join(f"{table}.{_quoted(name)}" for name in key)


def _stage(s: int, stage: Stage, key: Sequence[str]) -> list[str]:
    before = "p.f"
    after = "CASE WHEN q.z < 0e0 THEN 0e0 WHEN q.z > 1e0 THEN 1e0 ELSE q.z END"
    if stage.link == "logit":
        low, high = _literal(LOGIT_EPS), _literal(1 - LOGIT_EPS)
        inner = f"(CASE WHEN p.f < {low} THEN {low} WHEN p.f > {high} THEN {high} ELSE p.f END)"
        before = f"LN({inner} / (1e0 - {inner}))"
        # Beyond the largest exponent some engines fail, and do not round to 0 and infinity.
        far = _literal(FAR_ODDS)
        after = f"CASE WHEN q.z < -{far} THEN 0e0 WHEN q.z > {far} THEN 1e0 ELSE 1e0 / (1e0 + EXP(-q.z)) END"
    return [
        f"placed{s} AS (SELECT {_of(key, 'r')}, r.f, r.sid, b.bin, b.base FROM rated{s} AS r "
        f"LEFT JOIN mcspark_bin AS b ON b.stage = {s} AND b.slot = FLOOR(r.f * {SLOTS}) "
        "AND r.f > b.low AND r.f <= b.high)",
        f"curves{s} AS (SELECT d.sid, d.bin, SUM(v.term) AS term "
        f"FROM (SELECT DISTINCT sid, bin FROM placed{s}) AS d JOIN members AS m ON m.sid = d.sid "
        f"JOIN mcspark_curve AS v ON v.stage = {s} AND v.grp = m.grp AND v.bin = d.bin "
        "GROUP BY d.sid, d.bin)",
        f"moved{s} AS (SELECT {_of(key, 'p')}, p.sid, "
        f"{before} + p.base + COALESCE(o.term, 0e0) + COALESCE(c.term, 0e0) AS z FROM placed{s} AS p "
        f"LEFT JOIN pairs AS o ON o.sid = p.sid AND o.stage = {s} "
        f"LEFT JOIN curves{s} AS c ON c.sid = p.sid AND c.bin = p.bin)",
        f"rated{s + 1} AS (SELECT {_of(key, 'q')}, {after} AS f, q.sid FROM moved{s} AS q)",
    ]


def _code(i: int, family: Family, model: SavedModel, dialect: str) -> str:
    """The group of a row in a family, -1 for none."""
    first = sum(len(f.categories) for f in model.groups.families[:i])
    if not family.categories:
        return "-1"
    if family.kind == "predicate":
        tree = condition(family, dialect)
        for column in list(tree.find_all(_column_type())):
            column.set("table", _identifier("t"))
        return f"CASE WHEN {tree.sql(dialect=_SPOKEN, identify=True)} THEN {first} ELSE -1 END"
    if family.kind == "bins":
        assert family.bins is not None
        column = f"t.{_quoted(family.column)}"
        edges = [_literal(edge) for edge in family.bins]
        inside = (
            f"WHEN {column} >= {edges[int(k)]} AND {column} < {edges[int(k) + 1]} THEN {first + place}"
            for place, k in enumerate(family.categories)
        )
        return f"CASE {' '.join(inside)} ELSE -1 END"
    return f"COALESCE(c{i}.grp, -1)"


def _join(i: int, family: Family) -> str:
    if family.kind not in ("value", "divide") or not family.categories:
        return ""
    column = f"t.{_quoted(family.column)}"
    if family.kind == "value":
        text = isinstance(family.categories[0], str)
        same = f"c{i}.word = {column}" if text else f"c{i}.number = CAST({column} AS DOUBLE)"
    else:
        number = f"CAST({column} AS DOUBLE)"
        top, bottom = map(_literal, decimal_ratio(float(family.divide_by or 1)))
        # Beyond these bounds some engines fail, and do not round to 0 and infinity.
        inside = f"CASE WHEN ABS({number}) < 1e-290 THEN 0e0 WHEN ABS({number}) < 1e290 THEN {number} END"
        guess = f"FLOOR(({inside}) / {_literal(float(family.divide_by or 1))})"
        below = f"CASE WHEN {number} < {guess} * {top} / {bottom} THEN 1 ELSE 0 END"
        above = f"CASE WHEN {number} >= ({guess} + 1) * {top} / {bottom} THEN 1 ELSE 0 END"
        same = f"c{i}.number = {guess} - {below} + {above}"
    return f"LEFT JOIN mcspark_category AS c{i} ON c{i}.family = {i} AND {same}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _column_type() -> Any:
    from sqlglot import exp  # noqa: PLC0415

    return exp.Column


def _identifier(name: str) -> Any:
    from sqlglot import exp  # noqa: PLC0415

    return exp.to_identifier(name)

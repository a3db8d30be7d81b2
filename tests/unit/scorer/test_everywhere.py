"""A hundred calibrators drawn at random are the same function everywhere, to 1e-12."""

from __future__ import annotations

import json
import math
import sqlite3
from functools import cache

import brute_force
import duckdb
import numpy as np
import pandas as pd
import postgres
import pyarrow as pa
import pytest
from onnx_runs import scored
from random_models import CONDITIONS, random_model

from mcspark.export.onnx_model import to_onnx
from mcspark.export.plain import to_plain
from mcspark.export.sql import to_sql
from mcspark.scorer import Scorer

MODELS = range(100)
TYPES = {
    "id": pa.int64(), "the score": pa.float64(), "whole": pa.int64(), "word": pa.string(),
    "cut": pa.float64(), "ratio": pa.float64(),
}  # fmt: skip
QUERY = "SELECT calibrated_score FROM people_calibrated ORDER BY id"


@cache
def drawn(seed, conditions=True):
    """The model, its rows as a table, and the scores of the scorer."""
    saved, rows = random_model(seed, conditions)
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()}
    table = pa.table(columns)
    return saved, table, Scorer(saved).score(table)


def worst(found, seed, conditions=True):
    expected = drawn(seed, conditions)[2]
    found = np.array(found, dtype=float)
    assert found.shape == expected.shape
    assert np.isfinite(found).all(), f"model {seed}"
    difference = np.abs(found - expected).max()
    assert difference <= 1e-12, f"model {seed}"


def test_the_definition_in_plain_python(monkeypatch):
    monkeypatch.setattr(brute_force, "CONDITIONS", CONDITIONS)
    for seed in MODELS:
        saved, table, _ = drawn(seed)
        plain = json.loads(json.dumps(to_plain(saved)))
        rows = table.to_pylist()
        worst([brute_force.score(plain, {k: _finite(v) for k, v in row.items()}) for row in rows], seed)


def _finite(value):
    return None if isinstance(value, float) and not math.isfinite(value) else value


def test_one_row_at_a_time():
    for seed in MODELS:
        saved, table, expected = drawn(seed)
        assert list(map(Scorer(saved).score_one, table.to_pylist())) == expected.tolist()


def test_duckdb():
    for seed in MODELS:
        saved, table, _ = drawn(seed)
        with duckdb.connect(config={"threads": 1}) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE people AS SELECT * FROM given")
            for statement in to_sql(saved, "duckdb", "people", ["id"]):
                connection.execute(statement)
            worst([row[0] for row in connection.execute(QUERY).fetchall()], seed)


def test_sqlite():
    for seed in MODELS:
        saved, table, _ = drawn(seed)
        with sqlite3.connect(":memory:") as connection:
            connection.execute('CREATE TABLE people (id, "the score", whole, word, cut, ratio)')
            rows = [tuple(row.values()) for row in table.to_pylist()]
            connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", rows)
            for statement in to_sql(saved, "sqlite", "people", ["id"]):
                connection.execute(statement)
            worst([row[0] for row in connection.execute(QUERY)], seed)


def test_onnx_runtime():
    for seed in MODELS:
        saved, table, _ = drawn(seed, conditions=False)
        frame = table.to_pandas(types_mapper=pd.ArrowDtype)
        # A missing text is one that is no category; the empty one may be.
        text = table["word"].fill_null("missing").to_pylist()
        whole = ["" if v is None else str(v) for v in table["whole"].to_pylist()]
        frame = frame.assign(word=text, whole=whole)
        worst(scored(to_onnx(saved), frame), seed, conditions=False)


def test_postgresql():
    programs = postgres.programs()
    if programs is None:
        pytest.skip("no PostgreSQL on this machine: apt-get install postgresql")
    script = []
    for seed in MODELS:
        saved, table, _ = drawn(seed)
        rows = "".join("\t".join(map(_copied, row.values())) + "\n" for row in table.to_pylist())
        script += [
            f"CREATE SCHEMA m{seed}; SET search_path = m{seed};",
            'CREATE TABLE people (id INT, "the score" DOUBLE PRECISION, whole BIGINT, word TEXT, '
            "cut DOUBLE PRECISION, ratio DOUBLE PRECISION);",
            f"COPY people FROM STDIN;\n{rows}\\.",
            *(f"{statement};" for statement in to_sql(saved, "postgres", "people", ["id"])),
            "SET enable_nestloop = off;",
            f"{QUERY};",
            "\\echo",
        ]
    with postgres.server(programs) as server:
        found = server.psql("\n".join(script)).split("\n\n")
    for seed in MODELS:
        worst(found[seed].split(), seed)


def _copied(value):
    if value is None:
        return "\\N"
    return value.replace("\\", "\\\\") if isinstance(value, str) else repr(value)

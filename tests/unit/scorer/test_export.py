"""A model as SQL in real databases, and as JSON; and the golden cases of other implementations."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest
import sqlglot
from brute_force import score as brute_force
from golden_cases import golden
from make import FOLDER, LINKS, text
from scorer_models import form, model, people, write

from mcspark.cli.export import export
from mcspark.cli.text import Target
from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.core.model.stages import Stage, Stages
from mcspark.core.saved import SavedModel
from mcspark.errors import ConfigurationError
from mcspark.export.plain import to_plain
from mcspark.export.sql import DIALECTS, to_sql
from mcspark.scorer import Scorer


def in_duckdb(statements, table):
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
        for statement in statements:
            connection.execute(statement)
        return connection.execute("SELECT * FROM people_calibrated ORDER BY id").fetchdf()


def in_sqlite(statements, table):
    with sqlite3.connect(":memory:") as connection:
        table.to_sql("people", connection, index=False)
        for statement in statements:
            connection.execute(statement)
        return pd.read_sql("SELECT * FROM people_calibrated ORDER BY id", connection)


@pytest.mark.parametrize("links", [(), ("identity",), ("logit", "identity")])
@pytest.mark.parametrize(("dialect", "run"), [("duckdb", in_duckdb), ("sqlite", in_sqlite)])
def test_a_database_computes_the_scores_of_the_scorer(links, dialect, run):
    saved, table = model(links), people(2000).reset_index(names="id")
    for name in ("SEX", "AGEP", "OCCP", "job"):
        table[name] = table[name].astype(object).where(table.index % 37 != len(name), None)
    table = table.astype({"SEX": "Int64", "AGEP": "Int64", "OCCP": "Int64"})
    expected = Scorer(saved).score(table)
    table.loc[[3, 8], "score"] = [1.5, np.nan]
    found = run(to_sql(saved, dialect, "people", ["id"]), table)
    assert list(found) == ["id", "calibrated_score"]
    assert found["calibrated_score"].isna().to_numpy().nonzero()[0].tolist() == [3, 8]
    differs = np.abs(found["calibrated_score"].to_numpy(float) - expected)
    assert np.nanmax(differs) <= 1e-12


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_has_statements_that_its_parser_reads(dialect):
    statements = list(to_sql(model(("logit",)), dialect, "people", ["id"], "calibrated"))
    kinds = [sqlglot.parse_one(s, dialect=dialect).key for s in (statements[0], statements[-1])]
    assert kinds == ["create", "create"]
    assert statements[-1].startswith("CREATE VIEW calibrated AS WITH mcspark_rated0 AS")


def saved_with(where):
    groups = FittedGroups((Family("predicate", "p", (1,), where=where, columns=("a",)),))
    columns = {"scoreCol": "s", "predictionCol": "c"}
    stages = (Stage("identity", form(1, 3, np.random.default_rng(0)), 1),)
    return SavedModel("trees", groups, Stages(stages, groups.names), columns, 0, None)


def test_a_condition_that_means_something_else_there_is_refused():
    assert "LIKE 'x%'" in list(to_sql(saved_with("`a` LIKE 'x%'"), "duckdb", "t", ["id"]))[-1]
    for where, dialect in (
        ("`a` LIKE 'x%'", "sqlite"),
        ("(`a` / 2) > 1", "duckdb"),
        ("UPPER(`a`) = 'X'", "trino"),
    ):
        with pytest.raises(ConfigurationError, match=r"condition of group 'p', .* does not mean the same in"):
            list(to_sql(saved_with(where), dialect, "t", ["id"]))
    with pytest.raises(ConfigurationError, match="unknown dialect 'oracle'"):
        list(to_sql(model(()), "oracle", "t", ["id"]))


def test_the_command_writes_statements_and_json(tmp_path):
    folder = str(write(model(("identity",)), tmp_path))
    lines = list(export(folder, Target.sql, "sqlite", "people", ["id"], None))
    assert all(line.endswith(";") for line in lines)
    plain = json.loads("".join(export(folder, Target.json, None, None, [], None)))
    row = people(9).to_dict("records")[8]
    assert brute_force(plain, row) == pytest.approx(Scorer.load(folder).score_one(row), abs=1e-12)
    with pytest.raises(ConfigurationError, match="SQL needs --dialect"):
        list(export(folder, Target.sql, None, "people", ["id"], None))
    file = tmp_path / "calibrator.json"
    (told,) = export(folder, Target.json, output=str(file))
    assert json.loads(file.read_text()) == plain
    assert told == f"{file.stat().st_size:,} bytes written to {file}"
    with pytest.raises(ConfigurationError, match="exists"):
        list(export(folder, Target.json, output=str(file)))
    list(export(folder, Target.json, output=str(file), force=True))
    with pytest.raises(ConfigurationError, match="no folder"):
        list(export(folder, Target.json, output=str(tmp_path / "none" / "file")))


@pytest.mark.parametrize(
    ("table", "dialect", "source", "view"),
    [
        ("people", "postgres", "people", "people_calibrated"),
        ('s."My people"', "postgres", 's."My people"', 's."My people_calibrated"'),
        ("`my-project.data.people`", "bigquery", "`my-project`.`data`.`people`", "people_calibrated`"),
        ("my-project.data.people", "bigquery", "`my-project`.data.people", "data.people_calibrated"),
        ("a.b.c", "trino", "a.b.c", "a.b.c_calibrated"),
    ],
)
def test_tables_are_named_as_the_database_names_them(table, dialect, source, view):
    statement = list(to_sql(saved_with("`a` > 1"), dialect, table, ["id"]))[-1]
    assert f"FROM {source} AS t" in statement
    assert statement.split(" AS ")[0].endswith(view)


@pytest.mark.parametrize("table", ["people; DROP TABLE people", "people p", "(SELECT 1)", "", 'a"b'])
def test_what_is_no_name_of_a_table_is_refused(table):
    for source, view in ((table, None), ("people", table or None)):
        if source != "people" or view:
            with pytest.raises(ConfigurationError, match="no name of a table in duckdb"):
                list(to_sql(saved_with("`a` > 1"), "duckdb", source, ["id"], view))


def test_a_view_has_no_two_columns_of_one_name():
    for key in (["id", "ID"], ["C"]):
        with pytest.raises(ConfigurationError, match="two columns of one name: the key is"):
            list(to_sql(saved_with("`a` > 1"), "duckdb", "people", key))


def test_the_score_may_have_any_name():
    saved = model(("identity", "logit"))
    other = replace(saved, columns={"scoreCol": 'A "score" é', "predictionCol": "order"})
    table = people(50)
    expected, renamed = Scorer(saved).score(table), table.rename(columns={"score": 'A "score" é'})
    assert (Scorer(other).score(renamed) == expected).all()
    found = [brute_force(to_plain(other), row) for row in renamed.to_dict("records")]
    assert np.abs(found - expected).max() < 1e-12


@pytest.mark.parametrize(
    ("table", "key", "view", "words"),
    [
        ("people", "id", "people", "cannot be called people as the table is"),
        ("s.people", "id", "S.People", "as the table is"),
        ("mcspark_word", "id", None, "--table cannot be mcspark_word"),
        ("people", "id", "MCSPARK_TERM", "--view cannot be MCSPARK_TERM"),
        ("people", "mcspark_f", None, "'mcspark_f' cannot be a key"),
        ("people", "", None, "'' cannot be a key"),
    ],
)
def test_names_that_the_statements_need_themselves_are_refused(table, key, view, words):
    with pytest.raises(ConfigurationError, match=words):
        list(to_sql(model(("identity",)), "duckdb", table, [key], view))


def test_a_word_that_no_text_of_sql_can_hold_is_refused():
    groups = FittedGroups((Family("value", "job", ("a\0b",), columns=("job",)),))
    stages = (Stage("identity", form(1, 3, np.random.default_rng(0)), 1),)
    columns = {"scoreCol": "s", "predictionCol": "c"}
    saved = SavedModel("trees", groups, Stages(stages, groups.names), columns, 0, None)
    with pytest.raises(
        ConfigurationError, match=r"column 'job' has the category 'a\\x00b', and SQL has no text"
    ):
        list(to_sql(saved, "duckdb", "t", ["id"]))


def test_words_are_escaped_as_each_database_reads_them():
    words = ("it's", "x\\y", "a\nb", '"', "é")
    groups = FittedGroups((Family("value", "job", words, columns=("job",)),))
    stages = (Stage("identity", form(5, 3, np.random.default_rng(0)), 1),)
    columns = {"scoreCol": "s", "predictionCol": "c"}
    saved = SavedModel("trees", groups, Stages(stages, groups.names), columns, 0, None)
    for dialect in DIALECTS:
        (inserted,) = (
            s for s in to_sql(saved, dialect, "t", ["id"]) if s.startswith("INSERT INTO mcspark_word")
        )
        tree = sqlglot.parse_one(inserted, dialect=dialect)
        assert tuple(t.this for t in tree.find_all(sqlglot.exp.Literal) if t.is_string) == words


@pytest.mark.parametrize("name", LINKS)
def test_golden_cases_are_what_the_script_writes_and_what_the_scorer_computes(name):
    assert json.loads((FOLDER / f"{name}.json").read_text()) == json.loads(text(name))
    saved, cases = golden(name)
    found = [Scorer(saved).score_one(one["row"]) for one in cases]
    assert np.abs(np.array(found) - [one["expected"] for one in cases]).max() <= 1e-12

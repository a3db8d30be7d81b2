"""Columns and types: refused on the schema alone, with what was meant."""

from __future__ import annotations

import pytest

from mcspark.config import AttributeTable, ScoredTable
from mcspark.data.formats.csv_reader import as_numbers
from mcspark.data.rows.schema import check_attribute_schema, check_scored_schema, resolve_columns
from mcspark.errors import ContractError

SCORED = ScoredTable(path="x", key=["k"], weight="w")


def empty(spark, ddl):
    return spark.createDataFrame([], ddl)


def refusal(call, *args, **more):
    with pytest.raises(ContractError) as refused:
        call(*args, source="t", **more)
    return str(refused.value)


def test_all_problems_at_once_with_close_names(spark):
    frame = empty(spark, "k string, scores double, LABEL double, w string, STATE string")
    text = refusal(check_scored_schema, frame, SCORED, keep=["ST"])
    assert "t: 4 problem(s)" in text
    assert "- score: missing, did you mean scores?" in text
    assert "- label: missing, did you mean LABEL?" in text
    assert "- ST: missing, did you mean STATE?" in text
    assert "~ w string -> double: not numeric" in text


@pytest.mark.parametrize("kind", ["double", "float", "int", "bigint", "tinyint", "decimal(5,3)"])
def test_numbers_of_every_kind_pass(spark, kind):
    check_scored_schema(empty(spark, f"k string, score {kind}, label {kind}, w {kind}"), SCORED, source="t")


@pytest.mark.parametrize("kind", ["string", "boolean", "date", "array<double>"])
def test_other_types_are_refused(spark, kind):
    frame = empty(spark, f"k string, score {kind}, label double, w double")
    assert "~ score" in refusal(check_scored_schema, frame, SCORED)


def test_text_passes_only_in_csv(spark):
    frame = empty(spark, "k string, score string, label string, w string")
    check_scored_schema(frame, ScoredTable(path="x", format="csv", key=["k"], weight="w"), source="t")
    assert "3 problem(s)" in refusal(check_scored_schema, frame, SCORED)


def test_label_may_lack_where_it_is_not_used(spark):
    frame = empty(spark, "k string, score double, w double")
    check_scored_schema(frame, SCORED, source="t", with_label=False)
    assert "- label: missing" in refusal(check_scored_schema, frame, SCORED)


@pytest.mark.parametrize("kind", ["double", "float", "boolean", "binary", "array<int>", "timestamp"])
def test_keys_of_other_types_are_refused(spark, kind):
    frame = empty(spark, f"k {kind}, score double, label double, w double")
    assert "a key is text" in refusal(check_scored_schema, frame, SCORED)


@pytest.mark.parametrize("name", ["reasons", "Source", "__faults"])
def test_names_of_other_columns_are_refused(spark, name):
    frame = empty(spark, f"`{name}` string, score double, label double")
    assert f"! {name}" in refusal(check_scored_schema, frame, ScoredTable(path="x", key=[name]))


@pytest.mark.parametrize(
    ("ours", "theirs", "fits"),
    [
        ("string", "string", True),
        ("int", "bigint", True),
        ("smallint", "int", True),
        ("date", "date", True),
        ("decimal(9,0)", "decimal(12,0)", True),
        ("decimal(9,1)", "decimal(9,0)", False),
        ("string", "int", False),
        ("int", "string", False),
        ("decimal(9,0)", "bigint", False),
        ("date", "string", False),
    ],
)
def test_keys_compare_or_are_refused(spark, ours, theirs, fits):
    frame = empty(spark, f"k {ours}, a string")
    args = (frame, AttributeTable(path="x", key=["k"]))
    more = {"needed": ["a"], "scored_schema": empty(spark, f"k {theirs}, a double").schema}
    if fits:
        check_attribute_schema(*args, source="t", **more)
    else:
        assert "nothing is cast" in refusal(check_attribute_schema, *args, **more)


def test_bins_need_numbers(spark):
    frame = empty(spark, "k string, AGEP string, RELSHIPP string")
    more = {"needed": ["AGEP", "RELP"], "numeric": ["AGEP"], "scored_schema": frame.schema}
    text = refusal(check_attribute_schema, frame, AttributeTable(path="x", key=["k"]), **more)
    assert "~ AGEP string -> number" in text
    assert "- RELP: missing, did you mean RELSHIPP?" in text
    more["needed"] = ["AGEP"]
    check_attribute_schema(frame, AttributeTable(path="x", format="csv", key=["k"]), source="t", **more)


def test_csv_numbers(spark):
    frame = spark.createDataFrame([("01", "007"), ("03", None)], "`a.b` string, AGEP string")
    assert [tuple(row) for row in as_numbers(frame, ["AGEP"], "csv").collect()] == [
        ("01", 7.0),
        ("03", None),
    ]
    assert as_numbers(frame, ["AGEP"], "parquet") is frame


def test_each_column_comes_from_one_table(spark):
    one, two = empty(spark, "k string, SEX int, A int"), empty(spark, "k string, OCCP int, A int, extra int")
    scored = ["k", "score", "label", "region", "extra"]
    used = ["k", "score", "label"]
    assert resolve_columns(["OCCP", "SEX", "region", "k", "SEX"], scored, used, [one, two]) == (
        ("region", "k"),
        (("SEX",), ("OCCP",)),
    )
    for name in ("A", "extra"):
        with pytest.raises(ContractError, match=f"! {name}: in more than one"):
            resolve_columns([name], scored, used, [one, two])
    with pytest.raises(ContractError, match=r"- OCP: missing, did you mean OCCP\?"):
        resolve_columns(["OCP"], scored, used, [one, two])


def test_names_that_two_tables_share_are_refused_whatever_they_are_for(spark):
    one, two = (
        empty(spark, "k string, Weight double, label string, __unmatched int"),
        empty(spark, "k string, B int"),
    )
    scored = ["k", "score", "label", "weight", "b"]
    for name, other in (("Weight", "weight"), ("B", "b")):
        with pytest.raises(
            ContractError, match=rf"! {name}: in more than one of the tables \(also as {other}\)"
        ):
            resolve_columns([name], scored, ["k"], [one, two], "y")
    with pytest.raises(ContractError, match=r"! label: in more than one of the tables; rename"):
        resolve_columns(["label"], scored, ["k"], [one, two], "y")
    for name, label in (("score", "SCORE"), ("label", "Label")):
        with pytest.raises(ContractError, match=f"! {name}: a group of the label"):
            resolve_columns([name], scored, ["k"], [one, two], label)
    for name in ("weighT", "K"):
        with pytest.raises(ContractError, match=f"{name}: "):
            resolve_columns([name], scored, ["k"], [one, two])


@pytest.mark.parametrize("name", ["__unmatched", "__key_0_0", "__family_0", "__score"])
def test_working_names_are_refused_in_attribute_tables_where_they_are_used(spark, name):
    table, scored = empty(spark, f"id string, `{name}` int"), empty(spark, "id string, score double")
    where = AttributeTable(path="x", key=["id"])
    check_attribute_schema(table, where, source="x", scored_schema=scored.schema)
    with pytest.raises(ContractError, match=f"! {name}: names that begin with __ are kept"):
        check_attribute_schema(table, where, source="x", needed=[name], scored_schema=scored.schema)

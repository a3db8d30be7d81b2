"""Keys that name one row: exact, told with examples, and mended only as documented."""

from __future__ import annotations

import math

import pytest
from pyspark.sql import functions as F

from mcspark.config import ScoredTable
from mcspark.data.rows import keys
from mcspark.data.rows.contract import accepted, apply_row_rules, rejected
from mcspark.data.rows.keys import check_unique, supersede
from mcspark.data.rows.row_report import inspect
from mcspark.errors import ContractError


def check(df, *key):
    check_unique(df, key, source="t", mend="remove them")


def test_distinct_keys_pass(spark):
    pairs = [("1", "23"), ("12", "3"), ("1", "32"), ("", "123"), ("01", "23")]
    check(spark.createDataFrame(pairs, "a string, `b.c` string"), "a", "b.c")
    check(spark.range(20_000).selectExpr("cast(id % 100 as string) a", "id div 100 b"), "a", "b")


def test_repeated_keys_are_refused_with_counts_and_five_examples(spark):
    frame = spark.range(1000).selectExpr("id % 993 as a", "'x' as b", "rand(1) as other")
    with pytest.raises(ContractError) as refused:
        check(frame, "a", "b")
    text = str(refused.value)
    assert text.startswith("t: 7 key(s) (a, b) are on 14 rows, such as (a=0, b='x'), (a=1, b='x')")
    assert text.count("(a=") == 5
    assert text.endswith("; remove them")


def test_a_key_on_many_rows_counts_once(spark):
    with pytest.raises(ContractError, match=r"1 key\(s\) \(a\) are on 500 rows"):
        check(spark.range(500).selectExpr("7 as a"), "a")


def test_nulls_are_not_looked_at(spark):
    check(spark.createDataFrame([(None, 1), (None, 1), (1, None), (1, 1)], "a int, b int"), "a", "b")


def test_equal_hashes_of_distinct_keys_pass_and_hide_nothing(spark, monkeypatch):
    monkeypatch.setattr(keys.F, "xxhash64", lambda *columns: F.lit(1))
    check(spark.range(50).selectExpr("id as a"), "a")
    with pytest.raises(ContractError, match=r"2 key\(s\) \(a\) are on 4 rows"):
        check(spark.range(50).selectExpr("id % 48 as a"), "a")


def test_latest_row_stands_and_the_others_are_rejected(spark):
    rows = [
        ("a", 0.1, 1), ("a", 0.2, 3), ("a", 0.3, None),
        ("b", 0.4, 1), ("b", 7.0, 2),
        ("c", 0.5, None),
        (None, 0.6, 1), (None, 0.7, 2),
    ]  # fmt: skip
    scored = ScoredTable(path="x", key=["k"], label=None, dedupe={"latest_by": "at"})
    frame = spark.createDataFrame(rows, "k string, score double, at int")
    ruled = supersede(apply_row_rules(frame, scored, keep=["at"]), scored.key, scored.dedupe.latest_by)
    report = inspect(ruled, scored)
    assert (report.rows, report.accepted) == (8, 2)
    assert report.reasons == {"null_key": 2, "score_out_of_range": 1, "superseded": 3}
    assert sorted((r["k"], r["score"]) for r in accepted(ruled).collect()) == [("a", 0.2), ("c", 0.5)]
    assert rejected(ruled, scored.key, "s").count() == 6
    check(accepted(ruled), "k")


def test_a_tie_for_the_latest_is_refused(spark):
    scored = ScoredTable(path="x", key=["k"], label=None)
    frame = spark.createDataFrame([("a", 0.1, 1), ("a", 0.2, 1)], "k string, score double, at int")
    ruled = supersede(apply_row_rules(frame, scored, keep=["at"]), scored.key, "at")
    with pytest.raises(ContractError, match=r"1 key\(s\) \(k\) are on 2 rows, such as \(k='a'\)"):
        check(accepted(ruled), "k")


@pytest.mark.parametrize("kind", ["double", "float"])
def test_what_is_no_number_is_older_than_every_number(spark, kind):
    """Spark's own order has NaN behind every number."""
    scored = ScoredTable(path="x", key=["k"], label=None)
    rows = [("a", 0.1, math.nan), ("a", 0.2, 1.0), ("b", 0.3, math.inf), ("b", 0.4, math.nan)]
    frame = spark.createDataFrame(rows, f"k string, score double, at {kind}")
    ruled = supersede(apply_row_rules(frame, scored, keep=["at"]), scored.key, "at")
    assert sorted((r["k"], r["score"]) for r in accepted(ruled).collect()) == [("a", 0.2), ("b", 0.3)]

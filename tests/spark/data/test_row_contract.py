"""Row rules: each row gets all its reasons, in one pass, with the boundaries where they belong."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from pyspark.sql import functions as F

from mcspark.config import ScoredTable
from mcspark.data.rows.contract import (
    FAULTS,
    REASONS,
    accepted,
    apply_row_rules,
    bit,
    reasons_of,
    rejected,
)
from mcspark.data.rows.rejection import score_guess
from mcspark.data.rows.row_report import enforce, inspect
from mcspark.errors import ContractError

SCORED = ScoredTable(path="x", key=["k"], weight="w")
SCHEMA = "k string, score double, label double, w double"
NAN, INF = math.nan, math.inf


def faults(spark, row, schema=SCHEMA):
    return reasons_of(apply_row_rules(spark.createDataFrame([row], schema), SCORED).head()[FAULTS])


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (("a", 0.5, 1.0, 1.0), []),
        (("a", 0.5, None, 1.0), []),
        (("a", 0.0, 0.0, 0.0), []),
        (("a", 1.0, 1.0, 1e300), []),
        ((None, 0.5, 1.0, 1.0), ["null_key"]),
        (("a", None, 1.0, 1.0), ["score_null"]),
        (("a", NAN, 1.0, 1.0), ["score_nan"]),
        (("a", INF, 1.0, 1.0), ["score_infinite"]),
        (("a", -INF, 1.0, 1.0), ["score_infinite"]),
        (("a", 1.0 + 2e-9, 1.0, 1.0), ["score_out_of_range"]),
        (("a", -2e-9, 1.0, 1.0), ["score_out_of_range"]),
        (("a", 1.0 + 0.9e-9, 1.0, 1.0), []),
        (("a", 0.5, NAN, 1.0), ["label_nan"]),
        (("a", 0.5, -INF, 1.0), ["label_infinite"]),
        (("a", 0.5, 1.1, 1.0), ["label_out_of_range"]),
        (("a", 0.5, -0.1, 1.0), ["label_out_of_range"]),
        (("a", 0.5, 1.0, None), ["weight_null"]),
        (("a", 0.5, 1.0, NAN), ["weight_nan"]),
        (("a", 0.5, 1.0, INF), ["weight_infinite"]),
        ((None, NAN, 7.0, None), ["null_key", "score_nan", "label_out_of_range", "weight_null"]),
    ],
)
def test_reasons(spark, row, expected):
    assert faults(spark, row) == expected


def test_text_that_is_no_number_is_a_reason_in_every_ansi_mode(spark, ansi):
    schema = "k string, score string, label string, w string"
    assert faults(spark, ("01", "0.25", " 1 ", "2"), schema) == []
    bad = faults(spark, ("01", "a", "b", "c"), schema)
    assert bad == ["score_not_numeric", "label_not_numeric", "weight_not_numeric"]


def test_labels_beyond_every_whole_number_are_counted_in_every_ansi_mode(spark, ansi):
    labels = [1e30, -1e30, INF, NAN, -2147483648.0, 7.0]
    frame = spark.createDataFrame([(str(i), 0.5, v, 1.0) for i, v in enumerate(labels)], SCHEMA)
    found = inspect(apply_row_rules(frame, SCORED), SCORED)
    assert found.reasons == {"label_nan": 1, "label_infinite": 1, "label_out_of_range": 4}


@pytest.mark.parametrize(
    ("value", "expected"),
    [(-0.0, 0.0), (-1e-9, 0.0), (1 + 1e-9, 1.0), (5e-324, 5e-324), (1 - 2**-53, 1 - 2**-53), (0.29, 0.29)],
)
def test_noise_is_clipped_and_nothing_else_changes(spark, value, expected):
    row = accepted(apply_row_rules(spark.createDataFrame([("a", value, value, 1.0)], SCHEMA), SCORED)).head()
    for name in ("score", "label"):
        assert row[name] == expected
        assert math.copysign(1.0, row[name]) == 1.0


@pytest.mark.parametrize("kind", ["float", "int", "bigint", "decimal(10,4)", "smallint"])
def test_numbers_of_every_kind_become_doubles(spark, kind):
    frame = spark.createDataFrame([("a", 1.0, 0.0, 3.0)], SCHEMA)
    for name in ("score", "label", "w"):
        frame = frame.withColumn(name, F.col(name).cast(kind))
    out = accepted(apply_row_rules(frame, SCORED))
    assert [out.schema[name].dataType.simpleString() for name in ("score", "label", "w")] == ["double"] * 3
    assert tuple(out.head()) == ("a", 1.0, 0.0, 3.0)


def test_decimal_keeps_its_value(spark):
    frame = spark.createDataFrame([("a", Decimal("0.29"))], "k string, score decimal(4,2)")
    scored = ScoredTable(path="x", key=["k"], label=None)
    assert accepted(apply_row_rules(frame, scored)).head()["score"] == 0.29


def awkward_table(spark):
    rows = [
        ("a", 0.5, 1.0, 1.0),
        ("b", 1 + 1e-10, None, 0.0),
        ("c", -0.0, 0.0, 2.0),
        ("d", NAN, 1.0, 1.0),
        ("e", INF, NAN, 1.0),
        (None, 0.5, 1.0, 1.0),
        (None, NAN, 1.0, 1.0),
    ]
    return spark.createDataFrame(rows, SCHEMA)


def test_counts_in_one_job_add_up(spark):
    ruled = apply_row_rules(awkward_table(spark), SCORED)
    report = inspect(ruled, SCORED)
    assert (report.rows, report.accepted, report.rejected) == (7, 3, 4)
    assert (report.labelled, report.clipped, report.negative, report.weighted) == (2, 1, 0, 2)
    assert report.reasons == {"null_key": 2, "score_nan": 2, "score_infinite": 1, "label_nan": 1}
    out = rejected(ruled, ["k"], "scored").collect()
    assert len(out) == report.rejected
    assert accepted(ruled).count() == report.accepted
    assert accepted(ruled).columns == ["k", "score", "label", "w"]
    reasons = sorted((row["k"] or "", row["reasons"], row["source"]) for row in out)
    assert reasons == [
        ("", ["null_key"], "scored"),
        ("", ["null_key", "score_nan"], "scored"),
        ("d", ["score_nan"], "scored"),
        ("e", ["score_infinite", "label_nan"], "scored"),
    ]


def test_of_several_scores_a_reason_names_the_one_it_is_about(spark):
    rows = [
        ("a", 0.5, "0.25", 1.0),
        ("b", None, "1", 1.0),
        ("c", NAN, "87 %", 1.0),
        ("d", 1 + 1e-10, "-7", None),
        ("e", 300.0, "-7", 9.0),
    ]
    frame = spark.createDataFrame(rows, "k string, s double, `b.c` string, label double")
    scored = ScoredTable(path="x", key=["k"], scores=["s", "b.c"], format="csv")
    ruled = apply_row_rules(frame, scored)
    found = {row["k"]: row["reasons"] for row in rejected(ruled, ["k"], "scored").collect()}
    assert found == {
        "b": ["score_null: s"],
        "c": ["score_not_numeric: b.c", "score_nan: s"],
        "d": ["score_out_of_range: b.c"],
        "e": ["score_out_of_range: s", "score_out_of_range: b.c", "label_out_of_range"],
    }
    assert accepted(ruled).collect() == [("a", 0.5, 0.25, 1.0)]
    report = inspect(ruled, scored)
    assert (report.rows, report.accepted, report.labelled, report.label_faults) == (5, 1, 1, 1)
    assert report.reasons == {
        "score_null: s": 1, "score_not_numeric: b.c": 1, "score_nan: s": 1,
        "score_out_of_range: s": 1, "score_out_of_range: b.c": 2, "label_out_of_range": 1,
    }  # fmt: skip
    assert (report.score.seen, report.score.accepted) == ((-7.0, 300.0), (0.25, 0.5))
    assert (report.score.percent, report.score.comma, report.label.codes) == (1, 0, {9: 1})
    assert score_guess(report.score) == "; 1 scores are written as percent: divide by 100, without the sign"


@pytest.mark.parametrize("kind", ["string", "long", "double", "decimal(5, 2)"])
def test_a_label_names_its_class_as_text(spark, kind):
    rows = [("a", 0.5, 0.25, "1"), ("b", 0.5, 0.25, "12"), ("c", 0.5, 0.25, "3"), ("d", 0.5, 0.25, None)]
    frame = spark.createDataFrame(rows, "k string, s double, t double, label string")
    frame = frame.withColumn("label", F.col("label").cast(kind))
    scored = ScoredTable(path="x", key=["k"], classes={"1": "s", "12": "t"})
    ruled = apply_row_rules(frame, scored)
    assert accepted(ruled).schema["label"].dataType == frame.schema["label"].dataType
    assert [row["k"] for row in accepted(ruled).collect()] == ["a", "b", "d"]
    assert [(row["k"], row["reasons"]) for row in rejected(ruled, ["k"], "s").collect()] == [
        ("c", ["label_no_class"])
    ]
    report = inspect(ruled, scored)
    assert (report.labelled, report.label_faults, report.reasons) == (2, 1, {"label_no_class": 1})


def test_every_reason_has_its_own_bit():
    assert len({bit(reason) for reason in REASONS}) == len(REASONS)
    assert reasons_of(sum(bit(reason) for reason in REASONS)) == list(REASONS)


def test_without_label_and_with_columns_to_keep(spark):
    frame = spark.createDataFrame([("a", 0.5, 1.0, "x")], "k string, score double, w double, `a.b` string")
    ruled = apply_row_rules(frame, SCORED, with_label=False, keep=["a.b"])
    assert accepted(ruled).columns == ["k", "a.b", "score", "w"]
    assert inspect(ruled, SCORED, with_label=False).labelled == 0


def test_awkward_column_names(spark):
    names = ["k e.y", "sc`ore", 'la"bel', "wéight.x"]
    frame = spark.createDataFrame([("a", -0.0, 1.0, 2.0)], SCHEMA).toDF(*names)
    scored = ScoredTable(path="x", key=[names[0]], score=names[1], label=names[2], weight=names[3])
    ruled = apply_row_rules(frame, scored)
    assert tuple(accepted(ruled).head()) == ("a", 0.0, 1.0, 2.0)
    assert inspect(ruled, scored).accepted == 1
    assert rejected(ruled, scored.key, "s").columns == ["k e.y", "reasons", "source"]


def enforced(spark, rows, **more):
    ruled = apply_row_rules(spark.createDataFrame(rows, SCHEMA), SCORED)
    enforce(inspect(ruled, SCORED), ruled, SCORED, source="t", **more)


def test_negative_weights_are_refused_with_keys(spark):
    rows = [(f"k{i}", 0.5, 1.0, -1.0) for i in range(7)] + [("ok", 0.5, 1.0, 1.0)]
    with pytest.raises(
        ContractError, match=r"t: 7 row\(s\) with a negative w, such as \(k='k\d'\)"
    ) as refused:
        enforced(spark, rows)
    assert str(refused.value).count("(k=") == 5
    enforced(spark, [("a", 0.5, 1.0, 1.0), ("b", 0.5, 1.0, -0.0)])


def test_all_zero_weights_are_refused(spark):
    with pytest.raises(ContractError, match="no labelled row has a w above 0"):
        enforced(spark, [("a", 0.5, 1.0, 0.0), ("b", 0.5, None, 1.0)])
    with pytest.raises(ContractError, match="no row has a w above 0"):
        enforced(spark, [("a", 0.5, None, 0.0)])
    enforced(spark, [("a", 0.5, 1.0, 0.0), ("b", 0.5, 1.0, 1.0)])


def test_rejected_share_and_empty_tables(spark):
    rows = [("a", 0.5, 1.0, 1.0), ("b", NAN, 1.0, 1.0)]
    enforced(spark, rows, max_rejected_share=0.5)
    with pytest.raises(ContractError, match=r"1 of 2 rows rejected \(50.00%, allowed 49.00%\): score_nan 1"):
        enforced(spark, rows, max_rejected_share=0.49)
    with pytest.raises(ContractError, match="it has no rows; set allow_empty"):
        enforced(spark, [])
    with pytest.raises(ContractError, match="all 1 rows are rejected: score_nan 1"):
        enforced(spark, rows[1:])
    enforced(spark, [], allow_empty=True)
    enforced(spark, rows[1:], allow_empty=True)

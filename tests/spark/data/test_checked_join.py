"""The one join: as many rows after it as before, and what does not match is counted."""

from __future__ import annotations

import pytest

from mcspark.config import AttributeTable
from mcspark.data.rows.contract import rejected
from mcspark.data.rows.join import UNMATCHED, join_attributes, joined_counts, mark_unmatched, refuse_unmatched
from mcspark.errors import ContractError

KEY = ("h", "p.n")


def table(policy="unknown", name="attributes"):
    return AttributeTable(path=name, key=list(KEY), on_unmatched=policy)


@pytest.fixture
def clean(spark):
    rows = [("01", 1, 0.1), ("01", 2, 0.2), ("1", 1, 0.3), ("02", 1, 0.4)]
    return spark.createDataFrame(rows, "h string, `p.n` int, score double")


@pytest.fixture
def persons(spark):
    rows = [(1, "01", 1, "x"), (2, "01", 2, "x"), (None, "1", 1, "x"), (9, "77", 1, "x"), (8, None, 1, "x")]
    return spark.createDataFrame(rows, "`A G` int, h string, `p.n` bigint, unused string")


@pytest.fixture
def houses(spark):
    return spark.createDataFrame([("01", 1, "r"), ("02", 1, "s")], "h string, `p.n` int, region string")


def test_rows_stay_and_attributes_come(clean, persons, houses):
    joined = join_attributes(clean, KEY, [(persons, table()), (houses, table())], [["A G"], ["region"]])
    assert joined.columns == ["h", "p.n", "score", "A G", "region", UNMATCHED]
    assert sorted(tuple(row) for row in joined.collect()) == [
        ("01", 1, 0.1, 1, "r", 0),
        ("01", 2, 0.2, 2, None, 2),
        ("02", 1, 0.4, None, "s", 1),
        ("1", 1, 0.3, None, None, 2),
    ]
    assert joined_counts(joined, 2)[0] == (1, 2)
    # Of two null values of "A G" one belongs to a row that its table lacks; so do both of "region".
    assert joined_counts(joined, 2, [("A G", 1), ("region", 2), ("region", 0)]) == ((1, 2), (1, 0, 2))


def test_no_table_and_no_column(clean, houses):
    assert join_attributes(clean, KEY, [], []).select(UNMATCHED).distinct().collect() == [(0,)]
    joined = join_attributes(clean, KEY, [(houses, table())], [[]])
    assert joined_counts(joined, 1)[0] == (2,)


def test_null_keys_of_attributes_match_nothing(spark, clean):
    nulls = spark.range(1000).selectExpr("if(id < 2000, null, '01') h", "1 as `p.n`", "id as a")
    joined = join_attributes(clean, KEY, [(nulls, table())], [["a"]])
    assert joined.count() == 4
    # Spark infers that the key is not null, here id >= 2000, and drops the rest before the shuffle.
    assert "Filter (id" in joined._jdf.queryExecution().optimizedPlan().toString()


def test_fail_refuses_with_keys(clean, houses):
    joined = join_attributes(clean, KEY, [(houses, table())], [["region"]])
    refuse_unmatched(joined, KEY, [table("unknown")], (2,))
    refuse_unmatched(joined, KEY, [table("fail")], (0,))
    with pytest.raises(
        ContractError, match=r"lost: no attributes for 2 scored row\(s\), such as \(h="
    ) as told:
        refuse_unmatched(joined, KEY, [table("fail", "lost")], joined_counts(joined, 1)[0])
    assert "(h='01', p.n=2)" in str(told.value)
    assert "(h='1', p.n=1)" in str(told.value)


def test_reject_keeps_rows_in_equal_to_rows_out(clean, persons, houses):
    tables = [table("unknown"), table("reject")]
    joined = join_attributes(
        clean, KEY, list(zip([persons, houses], tables, strict=True)), [["A G"], ["region"]]
    )
    marked = mark_unmatched(joined, tables)
    out = rejected(marked, KEY, "scored").collect()
    assert sorted((row["h"], row["reasons"]) for row in out) == [("01", ["unmatched"]), ("1", ["unmatched"])]
    assert marked.where("__faults = 0").count() == 2
    assert mark_unmatched(joined, [table(), table()]).where("__faults <> 0").count() == 0

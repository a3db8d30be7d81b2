"""A null in the key, on either side."""

from __future__ import annotations

import pandas as pd

from mcspark.config import AttributeTable
from mcspark.data.rows.join import join_attributes


def nulled(rows: int):
    def change(table: pd.DataFrame) -> pd.DataFrame:
        table.loc[table.index[:rows], "house"] = None
        return table

    return change


def test_scored_rows_are_rejected_and_attribute_rows_match_nothing(world, people):
    world.change("scored", nulled(4))
    world.change("attributes", nulled(6))
    done = world.ran()
    assert done.summary["rejected_by_reason"] == {"null_key": 4}
    assert done.summary["rows"] == {
        **done.summary["rows"], "in": len(people), "scored": len(people) - 4, "rejected": 4,
    }  # fmt: skip
    assert list(done.summary["unmatched"].values()) == [2]
    rejected = world.rejected(done)
    assert rejected["house"].isna().all()
    assert sorted(rejected["person"]) == sorted(people["person"][:4])


def test_repeated_null_keys_are_no_repeated_keys(world):
    world.change("scored", lambda t: pd.concat([t, *[t.iloc[:1].assign(house=None)] * 3]))
    done = world.ran()
    assert done.summary["rows"]["rejected"] == 3


def test_many_nulls_do_not_meet_in_one_task(spark, world):
    """They leave both sides of the join before it shuffles, so no task gets them."""
    clean = spark.range(1000).selectExpr("cast(id as string) house", "id person")
    nulls = spark.range(50_000).selectExpr(
        "if(id < 1000, cast(id as string), null) house", "id person", "id v"
    )
    table = AttributeTable(path="a", key=("house", "person"))
    joined = join_attributes(clean, ["house", "person"], [(nulls, table)], [["v"]])
    plan = joined._jdf.queryExecution().optimizedPlan().toString()
    right = plan[plan.index("Join LeftOuter") :].partition("Range (0, 1000,")[2]
    assert "Filter" in right, plan
    sizes = joined.rdd.glom().map(len).collect()
    assert sum(sizes) == 1000

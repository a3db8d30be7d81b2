"""Column names with dots, spaces, quotes, Unicode and the characters of JSON, or that differ in case."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

AWKWARD = {
    "house": "house.no", "person": 'per "son"', "score": "f0(x) 'base'", "label": "y{[,:]}",
    "w": "Gewicht ä→", "sex": "sex`s", "age": "age in years", "job": "job.title",
}  # fmt: skip
KEY = [AWKWARD["house"], AWKWARD["person"]]


@pytest.fixture
def awkward(world):
    """The sections of a configuration for every column renamed."""
    for name in ("scored", "attributes"):
        world.change(name, lambda t: t.rename(columns=AWKWARD))
    columns = [{"column": AWKWARD["sex"]}, {"column": AWKWARD["age"], "bins": [0, 30, 60, 120]}]
    return {
        "scored": {"key": KEY, "score": AWKWARD["score"], "label": AWKWARD["label"], "weight": AWKWARD["w"]},
        "attributes": [{"path": str(world.root / "attributes"), "key": KEY}],
        "groups": {
            "columns": [*columns, {"column": AWKWARD["job"]}],
            "predicates": [{"name": 'old "women" <b>', "where": "`sex``s` = 2 AND `age in years` >= 60"}],
        },
        "calibrator": {"max_trees": 3},
    }


def test_awkward_names_are_quoted_rightly(world, awkward, people):
    done = world.ran("calibrate", **awkward)
    metrics = pq.read_table(done.summary["paths"]["metrics"], partitioning=None).to_pandas()
    shares = metrics[metrics["metric"] == "share"].set_index("group")["value"]
    assert {"job.title=a", "sex`s=2", "age in years=[30,60)", 'old "women" <b>'} <= set(shares.index)
    table = world.output(done, KEY)
    assert list(table)[:5] == [*KEY, AWKWARD["score"], AWKWARD["label"], AWKWARD["w"]]
    assert np.array_equal(table[AWKWARD["score"]], people["score"])
    again = world.ran("score", **awkward)
    assert world.output(again, KEY).equals(table)


def test_names_that_differ_only_in_case_are_refused(world):
    world.change("scored", lambda t: t.assign(SCORE=t["score"]))
    world.refused(r"columns that differ only in case.*rename one")


def test_names_kept_for_working_columns_are_refused(world):
    world.change("scored", lambda t: t.rename(columns={"score": "__score"}))
    world.refused("names that begin with __ are kept for working columns", scored={"score": "__score"})


@pytest.mark.parametrize("name", ["", "a\nb", "${spark.app.name}", "x" * 300])
def test_names_that_no_table_can_hold_are_refused_before_spark(world, name):
    world.refused("column name", code=2, scored={"score": name})

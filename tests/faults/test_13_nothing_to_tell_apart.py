"""One label class, one score, a group of one row, an empty group: numbers, or null, and never NaN."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest


def metrics_of(done):
    json.dumps(done.summary, allow_nan=False)
    table = pd.read_parquet(done.summary["paths"]["metrics"], partitioning=None)
    return table[table["stage"] == "before"]


DEGENERATE = {
    "one label": lambda t: t.assign(label=1.0),
    "one score": lambda t: t.assign(score=0.5),
    "one score at the edge": lambda t: t.assign(score=1.0),
    "one label and one score": lambda t: t.assign(label=0.0, score=0.0),
}


@pytest.mark.parametrize("what", DEGENERATE)
def test_metrics_are_defined(world, what):
    world.change("scored", DEGENERATE[what])
    done = world.ran("audit")
    level = done.summary["metrics"]["before"]["by_level"]["5"]
    assert 0 <= level["ma_error"] <= level["mc_error"] <= 1
    assert metrics_of(done)["value"].notna().all()


def test_one_label_and_one_score_can_be_learned_from(world):
    world.change("scored", lambda t: t.assign(label=1.0, score=0.5))
    done = world.ran("calibrate")
    assert done.summary["metrics"]["after"]["loss"] < done.summary["metrics"]["before"]["loss"]
    assert metrics_of(done)["value"].notna().all()


def test_a_group_of_one_row_is_marked_and_left_out_of_the_maximum(world, people):
    lone = people.index[5]

    def alone(table):
        table["job"] = np.where(table.index == lone, "hermit", table["job"])
        return table

    world.change("attributes", alone)
    world.change("scored", lambda t: t.assign(score=np.where(t.index == lone, 1.0, t["score"]), part="test"))
    world.change("scored", lambda t: t.assign(label=np.where(t.index == lone, 0.0, t["label"])))
    done = world.ran("audit", groups={"min_share": 0.0}, split={"column": "part"})
    table = metrics_of(done)
    small = table[(table["metric"] == "too_small") & (table["value"] == 1)]["group"]
    assert list(small) == ["job=hermit"]
    assert "job=hermit" not in set(table[table["metric"] == "mc_error"]["group"])


def test_an_empty_group_is_no_group_of_note(world):
    sections = {"predicates": [{"name": "nobody", "where": "age > 200"}]}
    done = world.ran("audit", groups=sections)
    table = metrics_of(done)
    rows = table[(table["metric"] == "group_rows") & (table["group"] == "nobody")]["value"]
    assert list(rows) == [0]
    assert done.summary["metrics"]["before"]["by_level"]["5"]["worst_group"] != "nobody"


def test_nothing_to_learn_ships_the_score_as_it_is(world):
    """Labels that are the scores: no tree gains anything on the rows held out."""
    world.change("scored", lambda t: t.assign(label=t["score"]))
    done = world.ran("calibrate")
    assert done.summary["stages"] == []
    assert "the score ships as it is" in done.log
    output = world.output(done)
    assert np.array_equal(output["calibrated_score"], output["score"])


def test_nothing_held_out_to_measure_on_is_null(world):
    world.change("scored", lambda t: t.assign(part="fit"))
    done = world.ran("audit", split={"column": "part"})
    assert done.summary["rows"]["test"] == 0
    level = done.summary["metrics"]["before"]["by_level"]["5"]
    assert (level["mc_error"], done.summary["metrics"]["before"]["loss"]) == (None, None)

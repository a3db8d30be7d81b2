"""Weights that are negative, zero, or worth two rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

ROLES = ["fit", "test", "fit"]


def by_hand(people):
    """A split that does not depend on the key, so that a copy of a row has its role."""
    return people.assign(part=[ROLES[i % 3] for i in range(len(people))])


def numbers(done, stage):
    """Every number of the metrics but counts of rows, and what chance does with so many."""
    table = pd.read_parquet(done.summary["paths"]["metrics"], partitioning=None)
    table = table[~table["metric"].str.contains("rows|small|floor|p_value|low|high|error|sigma|detectable")]
    table = table[table["stage"] == stage]
    return table.drop_duplicates(["metric", "group", "levels", "level"]).set_index(
        ["metric", "group", "levels", "level"]
    )["value"]


def test_negative_weights_are_refused(world):
    world.change("scored", lambda t: t.assign(w=np.where(t.index < 3, -1.0, t["w"])))
    done = world.refused(
        r"3 row\(s\) with a negative w, such as \(house='000000', person=1\)", job="calibrate"
    )
    assert "correct these weights" in done.error


@pytest.mark.parametrize("job", ["score", "calibrate"])
def test_all_zero_is_refused(world, job):
    world.change("scored", lambda t: t.assign(w=0.0))
    world.refused("no labelled row has a w above 0, so nothing counts", job=job)


def test_zero_contributes_nothing(world, people):
    """Wrong labels of weight 0 change no metric; their rows are scored all the same."""
    sections = {"split": {"column": "part"}}
    world.write("scored", by_hand(people).drop(columns=["sex", "age", "job"]))
    without = world.ran("audit", **sections)
    strange = by_hand(people).assign(house=lambda t: "z" + t["house"], label=0.0, score=1.0, w=0.0)
    world.write("scored", pd.concat([by_hand(people), strange]).drop(columns=["sex", "age", "job"]))
    world.write("attributes", pd.concat([people, strange])[["house", "person", "sex", "age", "job"]])
    done = world.ran("audit", **sections)
    assert done.summary["rows"]["scored"] == 2 * len(people)
    pd.testing.assert_series_equal(numbers(done, "before"), numbers(without, "before"), rtol=0, atol=1e-12)


def test_weight_two_is_the_row_twice(world, people):
    sections = {
        "calibrator": {"method": "multiaccuracy"},
        "split": {"column": "part", "early_stopping": 0.001},
    }
    table = by_hand(people).assign(w=1.0)
    world.write("scored", table.assign(w=2.0).drop(columns=["sex", "age", "job"]))
    once = world.ran("calibrate", **sections)
    one, before = world.output(once), {stage: numbers(once, stage) for stage in ("before", "after")}
    again = table.assign(house=lambda t: "z" + t["house"])
    world.write("scored", pd.concat([table, again]).drop(columns=["sex", "age", "job"]))
    world.write("attributes", pd.concat([people, again])[["house", "person", "sex", "age", "job"]])
    twice = world.ran("calibrate", **sections)
    for stage in ("before", "after"):
        pd.testing.assert_series_equal(numbers(twice, stage), before[stage], rtol=0, atol=1e-12)
    two = world.output(twice)
    two = two[~two["house"].str.startswith("z")].reset_index(drop=True)
    np.testing.assert_allclose(two["calibrated_score"], one["calibrated_score"], rtol=0, atol=1e-12)


def test_a_weight_that_outweighs_all_others_is_refused_with_its_share(world):
    world.change("scored", lambda t: t.assign(w=np.where(t.index == 5, 1e30, t["w"])))
    told = r"count like 1\.0 rows of equal weight; the largest w, 1e\+30, is 100\.00% of all weight"
    for job in ("audit", "calibrate"):
        world.refused(told, job=job)


def test_weights_of_any_range_give_numbers(world):
    """What weighs next to nothing contributes next to nothing."""
    world.change("scored", lambda t: t.assign(w=np.where(t.index % 2, 1.0, 1e-14)))
    done = world.ran("audit", evaluation={"levels": [5, 10], "draws": 10, "min_group_rows": 1})
    found = done.summary["metrics"]["before"]
    assert found["loss"] > 0
    for level in found["by_level"].values():
        assert level["mc_error"] > 0
        assert level["noise_floor"] > 0


@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e-170, 1e160, 1e306])
def test_weights_that_no_sum_can_hold_are_refused_with_the_mend(world, weight):
    """Scoring sums no weights, and has no reason to refuse them."""
    world.change("scored", lambda t: t.assign(w=weight))
    world.refused("which is out of range; divide the weights by their mean", job="audit")
    if weight == 5e-324:
        world.ran("score")

"""One name for two columns, and no group at all: refused alike by every job, before anything is learned."""

from __future__ import annotations

import pytest

ONE = {"columns": [{"column": "sex"}], "predicates": []}


@pytest.mark.parametrize("name", ["score", "label", "Label", "W", "SCORE"])
@pytest.mark.parametrize("job", ["calibrate", "audit"])
def test_a_group_column_called_as_a_column_of_the_scored_table_is_refused(world, job, name):
    world.change("attributes", lambda t: t.assign(**{name: t["sex"]}))
    groups = {**ONE, "columns": [{"column": name}]}
    leaks = name.lower() == "label"
    twice = "in more than one of the tables"
    world.refused("nobody knows of the rows" if leaks else twice, 2 if leaks else 3, job, groups=groups)
    # The label under another name is found by what the tables hold.
    if leaks:
        world.refused(twice, 3, job, groups=groups, scored={"label": "y"})


@pytest.mark.parametrize("name", ["__unmatched", "__key_0_0", "__family_0"])
def test_a_group_column_called_as_a_working_column_is_refused(world, name):
    world.change("attributes", lambda t: t.assign(**{name: t["sex"]}))
    groups = {**ONE, "columns": [{"column": name}]}
    world.refused("names that begin with __ are kept for working columns", 3, "audit", groups=groups)
    assert world.run("audit", groups=ONE).exit_code == 0  # what nobody uses disturbs nobody


@pytest.mark.parametrize("job", ["calibrate", "audit"])
def test_a_run_without_a_group_left_is_refused(world, job):
    words = r"no group is left: no category of sex holds more than the share 0.99 .*lower groups.min_share"
    world.refused(words, 3, job, groups={**ONE, "min_share": 0.99})


def test_conditions_count_the_same_members_whatever_the_operator_has_set(world):
    groups = {**ONE, "predicates": [{"name": "odd", "where": "job >= 65 OR age / (sex - 1) > 50"}]}
    name = "spark.sql.ansi.enabled"
    metrics = []
    try:
        for mode in ("true", "false"):
            world.spark.conf.set(name, mode)
            metrics.append(world.ran("audit", groups=groups).summary["metrics"])
    finally:
        world.spark.conf.set(name, "false")
    assert metrics[0] == metrics[1]

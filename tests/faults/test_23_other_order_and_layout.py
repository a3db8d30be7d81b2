"""The input shuffled, in other files and partitions: the same split, keys, cells and scores."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from .conftest import ATTRIBUTES, ROOT, SCORED, people_table

FORBIDDEN = r"monotonically_increasing_id|randomSplit|\brand\(\)|\brandn\(\)|F\.rand|F\.uuid|\.sample\("


def test_nothing_depends_on_it(spark, world):
    people = people_table(1500, seed=4)
    world.write("scored", people[SCORED])
    world.write("attributes", people[ATTRIBUTES])
    one = world.ran("calibrate")
    first = world.output(one)
    world.write("scored", people[SCORED].sample(frac=1, random_state=1), files=5)
    world.write("attributes", people[ATTRIBUTES].sample(frac=1, random_state=2), files=3)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    try:
        two = world.ran("calibrate")
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    second = world.output(two)
    assert first.drop(columns="calibrated_score").equals(second.drop(columns="calibrated_score"))
    np.testing.assert_allclose(second["calibrated_score"], first["calibrated_score"], rtol=0, atol=1e-12)
    for name in ("rows", "groups", "signatures", "cells", "stages", "metrics"):
        assert one.summary[name] == two.summary[name], name


def test_nothing_in_the_code_draws_by_place():
    """No ids by place, no unseeded draws, no split by chance."""
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in sorted(Path(ROOT / "mcspark").rglob("*.py"))
        for match in re.finditer(FORBIDDEN, path.read_text())
    ]
    assert found == []

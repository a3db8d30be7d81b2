"""Nine rows in ten on one signature, and 300 groups: no explosion of rows, no task that does all the work."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from .conftest import KEY

ROWS = 60_000


def big(world, skewed):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"house": np.arange(ROWS).astype(str), "person": 1, "score": rng.random(ROWS)})
    table["label"], table["w"] = (rng.random(ROWS) < table["score"]).astype(float), 1.0
    lucky = rng.random(ROWS) < (0.9 if skewed else 0.0)
    for name, most in (("sex", 3), ("age", 95), ("job", 12)):
        table[name] = np.where(lucky, 1, rng.integers(1, most, ROWS))
    table["job"] = table["job"].map("j{}".format)
    world.write("scored", table[[*KEY, "score", "label", "w"]])
    world.write("attributes", table[[*KEY, "sex", "age", "job"]])


def test_nine_rows_in_ten_alike_take_no_longer(world):
    """At most three times the time of the even case; the second run of each is measured."""
    seconds = {}
    sections = {"groups": {"min_share": 0.001}, "calibrator": {"method": "none"}}
    for skewed in (False, True):
        big(world, skewed)
        for _ in range(2):
            start = time.monotonic()
            done = world.ran("audit", **sections)
            seconds[skewed] = time.monotonic() - start
        assert done.summary["rows"]["scored"] == ROWS
    assert seconds[True] < 3 * seconds[False], seconds


def test_three_hundred_groups(world):
    """Signatures of several words, scored and measured without one row more."""
    big(world, skewed=True)
    rng = np.random.default_rng(1)
    world.change("attributes", lambda t: t.assign(job=rng.integers(0, 300, len(t)).astype(str)))
    done = world.ran("audit", groups={"min_share": 0.0})
    assert done.summary["groups"] > 300
    assert done.summary["rows"]["scored"] == ROWS

"""Nine rows in ten on one signature, and 300 groups: no explosion of rows, no task that does all the work."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcspark.benchmark.clock import Clock
from mcspark.ml.cells import driver_cells

from .conftest import KEY

ROWS = 60_000


@pytest.fixture(autouse=True)
def _in_the_cluster(monkeypatch):
    """Cells are made where those of many rows are."""
    monkeypatch.setattr(driver_cells, "_FEW", 0)


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
    """At most three times the processor time of the even case; a clock would also tell of other work."""
    clock = Clock(world.spark)
    sections = {"groups": {"min_share": 0.001}, "calibrator": {"method": "none"}}
    for name, skewed in (("even", False), ("skewed", True)):
        big(world, skewed)
        for _ in range(2):  # the first one also compiles
            done = clock.take(name, lambda: world.ran("audit", **sections))
        assert done.summary["rows"]["scored"] == ROWS
    even, skewed_too = (min(cost.cpu for cost in clock.costs[name]) for name in ("even", "skewed"))
    assert skewed_too < 3 * even, clock.table()


def test_three_hundred_groups(world):
    """Signatures of several words, scored and measured without one row more."""
    big(world, skewed=True)
    rng = np.random.default_rng(1)
    world.change("attributes", lambda t: t.assign(job=rng.integers(0, 300, len(t)).astype(str)))
    done = world.ran("audit", groups={"min_share": 0.0})
    assert done.summary["groups"] > 300
    assert done.summary["rows"]["scored"] == ROWS

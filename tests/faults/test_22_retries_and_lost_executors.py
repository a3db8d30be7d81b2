"""Speculation, tasks that are tried again, and executors killed in the middle of writing and of training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from .conftest import (
    ATTRIBUTES,
    DAY,
    SCORED,
    Child,
    World,
    content,
    leavings,
    people_table,
    read,
    run_child,
)

ROWS = 3000
CLUSTER = {
    "spark.speculation": "true",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.task.duration.threshold": "1s",
    "spark.speculation.interval": "50ms",
    "spark.sql.adaptive.enabled": "false",
}


@dataclass(frozen=True)
class Cluster:
    """A world of more people, what this process scores it as, and jobs on it with executors that die."""

    world: World
    expected: pd.DataFrame

    def run(self, job: str, **sections: Any) -> Child:
        config = str(self.world.configure(**sections))
        return run_child(
            "lose-executors", [job, "--config", config], master="local-cluster[2,1,1024]", conf=CLUSTER,
            timeout=400,
        )  # fmt: skip


@pytest.fixture
def cluster(world):
    people = people_table(ROWS, seed=9)
    world.write("scored", people[SCORED], files=4)
    world.write("attributes", people[ATTRIBUTES], files=4)
    return Cluster(world, world.output(world.ran()))


def test_no_row_is_twice_and_none_is_missing(cluster):
    """Speculation on, the first attempt of the write fails, the executor of a later one is killed."""
    child = cluster.run("score")
    (done,) = child.jobs
    assert done.exit_code == 0, child.log[-3000:]
    assert "killed" in child.told[0], "no executor was lost"
    assert done.summary["rows"] == {**done.summary["rows"], "in": ROWS, "scored": ROWS, "rejected": 0}
    output, expected = cluster.world.output(done), cluster.expected
    assert not output.duplicated(["house", "person"]).any()
    assert output.drop(columns="calibrated_score").equals(expected.drop(columns="calibrated_score"))
    assert np.array_equal(output["calibrated_score"], expected["calibrated_score"])
    assert not leavings(cluster.world.out)


@pytest.mark.slow
def test_an_executor_lost_in_training_is_exit_75_and_no_model_is_saved(cluster, ready):
    endless = {"max_trees": 60_000, "early_stopping_rounds": 60_000, "timeout_seconds": 90}
    child = cluster.run("calibrate", calibrator=endless)
    (done,) = child.jobs
    assert "killed" in child.told[0], (done.summary, child.log[-3000:])
    assert (done.exit_code, done.summary["status"]) == (75, "transient"), (done.summary, child.log[-3000:])
    assert content(cluster.world.root / "model") == content(ready / "model")
    assert read(cluster.world.out / "calibrated" / f"ds={DAY}").equals(cluster.expected)
    assert not leavings(cluster.world.out)

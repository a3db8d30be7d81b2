"""Speculation, tasks that are tried again, and executors killed in the middle of writing and of training."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import ATTRIBUTES, SCORED, content, leavings, people_table, run_child

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


@pytest.fixture(scope="module")
def cluster(spark, ready, tmp_path_factory):
    """Scored with an executor lost while writing, then calibrated with one lost while training."""
    import shutil

    from .conftest import World

    root = tmp_path_factory.mktemp("cluster") / "world"
    shutil.copytree(ready, root)
    world = World(spark, root)
    people = people_table(ROWS, seed=9)
    world.write("scored", people[SCORED], files=4)
    world.write("attributes", people[ATTRIBUTES], files=4)
    expected = world.output(world.ran())
    endless = {"max_trees": 60_000, "early_stopping_rounds": 60_000, "timeout_seconds": 90}
    config = str(world.configure(calibrator=endless))
    manifests = len(list(world.out.rglob("*_manifests/*.json")))
    child = run_child(
        "lose-executors", ["score", "--config", config], ["calibrate", "--config", config],
        master="local-cluster[2,1,1024]", conf=CLUSTER, timeout=400,
    )  # fmt: skip
    return world, child, expected, manifests


def test_no_row_is_twice_and_none_is_missing(cluster):
    world, child, expected, _ = cluster
    done = child.jobs[0]
    assert done.exit_code == 0, child.log[-3000:]
    assert "killed" in child.told[0], "no executor was lost"
    assert done.summary["rows"] == {**done.summary["rows"], "in": ROWS, "scored": ROWS, "rejected": 0}
    output = world.output(done)
    assert not output.duplicated(["house", "person"]).any()
    assert output.drop(columns="calibrated_score").equals(expected.drop(columns="calibrated_score"))
    assert np.array_equal(output["calibrated_score"], expected["calibrated_score"])


def test_an_executor_lost_in_training_is_exit_75_and_no_model_is_saved(cluster, ready):
    world, child, _, manifests = cluster
    done = child.jobs[1]
    assert "killed" in child.told[1], (done.summary, child.log[-3000:])
    assert (done.exit_code, done.summary["status"]) == (75, "transient"), (done.summary, child.log[-3000:])
    assert "try again in a new process" in done.error
    assert content(world.root / "model") == content(ready / "model")
    assert world.output(child.jobs[0]).shape[0] == ROWS
    assert len(list(world.out.rglob("*_manifests/*.json"))) == manifests + 2  # failed or not
    assert not leavings(world.out)

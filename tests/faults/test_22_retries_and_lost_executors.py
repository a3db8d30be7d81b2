"""Speculation, tasks that are tried again, and executors killed in the middle of writing and of training."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .child import ENDLESS
from .conftest import (
    ATTRIBUTES,
    DAY,
    SCORED,
    Child,
    Done,
    World,
    content,
    leavings,
    people_table,
    read,
    run_child,
)

ROWS = 3000
SYNAPSE = {"engine": "auto"}
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
    """Three jobs on two executors that die, and the first two of them in this process, on the same rows."""

    world: World
    child: Child
    here: World
    scored_here: Done
    calibrated_here: Done

    def done(self, job: int) -> tuple[Done, dict[str, Any]]:
        """How a job ended, and what befell its executors."""
        assert len(self.child.jobs) == 3, self.child.log[-4000:]
        return self.child.jobs[job], self.child.told[job]


def learned(world: World) -> dict[str, Any]:
    """Where a calibration goes, so that the scores of before stay as they are."""
    return {
        "output": {"path": str(world.out / "learned"), "partition": {"ds": DAY}},
        "model": {"path": str(world.root / "learned")},
    }


@pytest.fixture(scope="module")
def cluster(spark: Any, ready: Path, tmp_path_factory: Any) -> Cluster:
    """A score whose write loses an executor, a calibration in peace, and one whose trainer is killed."""
    root = tmp_path_factory.mktemp("cluster")
    people = people_table(ROWS, seed=9)
    worlds = [World(spark, root / name) for name in ("there", "here")]
    for world in worlds:
        shutil.copytree(ready, world.root)
        world.write("scored", people[SCORED], files=4)
        world.write("attributes", people[ATTRIBUTES], files=4)
    there, here = worlds
    config = str(there.configure(calibrator=SYNAPSE))
    to_learned = [f"--set={name}.path={section['path']}" for name, section in learned(there).items()]
    endless = {"max_trees": ENDLESS, "early_stopping_rounds": ENDLESS, "timeout_seconds": 120}
    child = run_child(
        "lose-executors",
        ["score", "--config", config],
        ["calibrate", "--config", config, *to_learned],
        ["calibrate", "--config", config, *(f"--set=calibrator.{k}={v}" for k, v in endless.items())],
        master="local-cluster[2,1,1024]",
        conf=CLUSTER,
    )
    return Cluster(
        there, child, here, here.ran("score"), here.ran("calibrate", calibrator=SYNAPSE, **learned(here))
    )


def test_no_row_is_twice_and_none_is_missing(cluster):
    """Speculation on, the first attempt of the write fails, the executor of a later one is killed."""
    done, told = cluster.done(0)
    assert done.exit_code == 0, (done.summary, done.log[-3000:])
    assert "killed" in told, "no executor was lost"
    assert done.summary["rows"] == {**done.summary["rows"], "in": ROWS, "scored": ROWS, "rejected": 0}
    output, expected = cluster.world.output(done), cluster.here.output(cluster.scored_here)
    assert not output.duplicated(["house", "person"]).any()
    assert output.drop(columns="calibrated_score").equals(expected.drop(columns="calibrated_score"))
    assert np.array_equal(output["calibrated_score"], expected["calibrated_score"])


def test_where_spark_speculates_barrier_tasks_train_the_same_model(cluster):
    done, told = cluster.done(1)
    assert done.exit_code == 0, (done.summary, done.log[-3000:])
    assert told["barrier"]
    assert done.summary["stages"][0]["trees"] > 0
    # Behind the trees, LightGBM notes its settings, the number of threads among them.
    there, here = (
        (world.root / "learned" / "trees_0.txt").read_text().partition("\nparameters:")[0]
        for world in (cluster.world, cluster.here)
    )
    assert there == here
    assert there.count("\nTree=") == done.summary["stages"][0]["trees"]
    assert cluster.world.output(done).equals(cluster.here.output(cluster.calibrated_here))


def test_an_executor_lost_in_training_is_exit_75_and_no_model_is_saved(cluster, ready):
    done, told = cluster.done(2)
    assert "killed" in told, (done.summary, done.log[-3000:])
    assert (done.exit_code, done.summary["status"]) == (75, "transient"), (done.summary, done.log[-3000:])
    assert "try again in a new process" in done.error.lower()
    manifests = [json.loads(file.read_text()) for file in cluster.world.out.rglob("*_manifests/*.json")]
    (lost,) = (manifest for manifest in manifests if manifest["status"] != "ok")
    assert (lost["status"], lost["exit_code"], lost["error"]) == ("transient", 75, done.error)
    assert content(cluster.world.root / "model") == content(ready / "model")
    before = cluster.here.output(cluster.scored_here)
    assert read(cluster.world.out / "calibrated" / f"ds={DAY}").equals(before)
    assert not leavings(cluster.world.out)

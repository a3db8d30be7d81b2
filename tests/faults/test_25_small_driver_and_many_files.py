"""What a run leaves in the session, and number and size of files. A small driver: `test_strange_host.py`."""

from __future__ import annotations

import threading

import pandas as pd
import pyarrow.parquet as pq

from mcspark.data.publishing import writers

from .conftest import ATTRIBUTES, SCORED, people_table


def test_nothing_stays_in_the_session(spark, world):
    """No cached table, no view, no thread."""
    world.ran()
    before = {thread.name for thread in threading.enumerate()}
    for job in ("calibrate", "score", "audit"):
        world.ran(job, calibrator={"method": "multiaccuracy"})
        assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty(), job
        assert not spark.catalog.listTables(), job
    left = {thread.name for thread in threading.enumerate()} - before
    assert not {name for name in left if not name.startswith("Thread-")}, left
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None


def test_hundreds_of_tiny_files_become_one(world):
    people = people_table(600, seed=2)
    world.write("scored", people[SCORED], files=300)
    world.write("attributes", people[ATTRIBUTES], files=200)
    done = world.ran()
    folder = done.summary["paths"]["output"]
    from pathlib import Path

    files = list(Path(folder).glob("part-*"))
    assert len(files) == 1
    assert len(world.output(done)) == 600


def test_no_file_is_larger_than_the_bound(world, monkeypatch):
    monkeypatch.setattr(writers, "ROWS_A_FILE", 50)
    done = world.ran()
    from pathlib import Path

    sizes = [pq.read_metadata(file).num_rows for file in Path(done.summary["paths"]["output"]).glob("part-*")]
    assert sum(sizes) == 240
    assert max(sizes) <= 50


def test_executors_that_differ_are_named_before_the_job(world, monkeypatch):
    """NumPy on the driver is another than on the executors: exit 2, and nothing was read."""
    from mcspark.engine.classic.engine import Classic
    from mcspark.runtime.tasks import preflight

    made = preflight.make_probe

    def other_numpy(*asked):
        probe = made(*asked)
        return lambda rows: ({**seen, "NumPy": "0.1"} if rows == () else seen for seen in probe(rows))

    monkeypatch.setattr(preflight, "make_probe", other_numpy)
    monkeypatch.setattr(Classic, "workers_are_the_drivers", lambda _: False)
    done = world.refused(r"NumPy on .* is .*, the driver has 0.1", code=2)
    assert "--archives" in done.error


def test_one_metrics_folder_a_run(world):
    done = world.ran("calibrate", calibrator={"method": "none"})
    table = pd.read_parquet(world.out / "calibrated_metrics")
    assert set(table["run_id"]) == {done.summary["run_id"]}

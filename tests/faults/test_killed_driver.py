"""The driver is killed (SIGKILL) during the staged write and during the renames; then the job runs again."""

from __future__ import annotations

import os
import signal

import pandas as pd
import pytest
from pyspark.sql import functions as F

from mcspark.data.leases.journal import Journal
from mcspark.data.leases.lease import Lease
from mcspark.data.publishing.sink import Publication, Target
from mcspark.runtime.files.files import Files
from mcspark.runtime.process.processes import Process

from .conftest import DAY, content, leavings, run_child


def command(world, job="score", **sections):
    return [job, "--config", str(world.configure(**sections))]


def test_while_it_stages(world):
    """The old tables are there, byte for byte, with the leavings of the dead run beside them."""
    before = content(world.out)
    world.change("scored", lambda t: t.assign(score=t["score"] / 2))
    child = run_child("die-while-staging", command(world), master="local[1]")
    assert child.exit_code == -signal.SIGKILL
    left = content(world.out)
    assert {name: left[name] for name in before} == before
    assert any(".staging-" in name for name in set(left) - set(before))
    assert any(name.endswith(".lease") for name in set(left) - set(before))
    done = world.ran()
    assert "took over the lease of a dead run" in done.log
    assert not leavings(world.out)
    assert world.output(done)["score"].max() <= 0.5


def test_while_it_renames(world, people):
    """New scores were in place beside old rejected rows: the next run puts the old scores back first."""
    before = content(world.out)
    world.change("scored", lambda t: t.assign(score=[9.0, *(t["score"][1:] / 2)]))
    child = run_child("die-while-renaming", command(world), master="local[1]")
    assert child.exit_code == -signal.SIGKILL
    day = world.out / "calibrated" / f"ds={DAY}"
    assert pd.read_parquet(day, partitioning=None)["score"].max() <= 0.5
    world.change("scored", lambda t: t.iloc[:0])
    refused = world.run()  # even a run that is refused mends what the dead one has left
    assert refused.exit_code == 3
    assert content(world.out) == before
    world.write("scored", people[["house", "person", "score", "label", "w"]])
    assert world.ran().summary["rows"]["scored"] == len(people)
    assert not leavings(world.out)


class Dead(BaseException):
    """The process is gone: nothing of it runs any more."""


def tables(spark, folder, rows, value):
    """Two tables and a folder that is no table, as a run of calibrate publishes them."""
    first = Target(str(folder / "out"), partition={"ds": "1"})
    frame = spark.range(rows).select("id", F.lit(value).alias("v"))

    def stage(publication):
        publication.stage(first, frame, rows=rows)
        publication.stage(first.beside("rejected"), frame, rows=rows)
        publication.stage_folder(
            str(folder / "model"), lambda place: Files(spark, place).write_text(f"{place}/m", value)
        )

    return first, stage


def run(spark, folder, name, rows, value):
    first, stage = tables(spark, folder, rows, value)
    with Lease(spark, first.leaf, name) as lease, Publication(spark, name, lease) as one:
        stage(one)
        one.publish()


STEPS = range(14)


@pytest.mark.parametrize("first_run", [True, False])
def test_at_every_step_of_a_publication_all_is_old_or_all_is_new(spark, tmp_path, monkeypatch, first_run):
    """Death before the n-th change of the file system, for every n; then the mending alone, and a new run."""
    reached = 0
    for step in STEPS:
        folder = tmp_path / str(step)
        folder.mkdir()
        if not first_run:
            run(spark, folder, "old", 5, "old")
        before = content(folder)
        died = die_at(spark, folder, monkeypatch, step)
        first, _ = tables(spark, folder, 0, "")
        with Lease(spark, first.leaf, "mender"):
            pass
        now = content(folder)
        assert not leavings(folder), step
        if died:
            reached += 1
            published = now != before
            values = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("m")}
            if published:  # nothing but the removal of the old tables was left to do
                assert values == {"model/m": b"new"}
                assert spark.read.parquet(first.leaf, first.beside("rejected").leaf).count() == 14
        else:
            break
        run(spark, folder, "next", 9, "next")
        assert spark.read.parquet(first.leaf).count() == 9
        assert (folder / "model" / "m").read_text() == "next"
    assert reached >= (5 if first_run else 8)


def die_at(spark, folder, monkeypatch, step):
    """A run that is dead from its step-th move or deletion on; whether it came so far."""
    count = [-1_000_000]  # what comes before the publication is not counted
    with monkeypatch.context() as patch:
        for name in ("move", "delete"):
            patch.setattr(Files, name, counted(getattr(Files, name), count, step))
        patch.setattr(Journal, "remove", counted(Journal.remove, count, step))
        patch.setattr(Publication, "_roll_back", lambda self: None)
        patch.setattr(Process, "is_gone", lambda self: None)
        first, stage = tables(spark, folder, 7, "new")
        lease = Lease(spark, first.leaf, "dead").__enter__()
        one = Publication(spark, "dead", lease).__enter__()
        count[0] = 0
        try:
            stage(one)
            one.publish()
            one.__exit__(None, None, None)
        except Dead:
            died = True
        else:
            died = False
    lease._withdraw()
    for mark in folder.rglob(".model.leases/*"):  # of a process that has ended
        mark.write_text("")
        os.utime(mark, (0, 0))
    return died


def counted(method, count, step):
    def counting(self, *arguments):
        count[0] += 1
        if count[0] > step:
            raise Dead
        return method(self, *arguments)

    return counting

"""A task fails in the middle of the write, and a disk that is full or may not be written."""

from __future__ import annotations

import contextlib
import os
import subprocess

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import functions as F

from mcspark.pipelines import score

from .conftest import leavings


@pytest.fixture
def failing(monkeypatch):
    """The write fails at one key, always."""
    calibrated_rows = score.calibrated_rows

    def fails(*arguments, **options):
        done = calibrated_rows(*arguments, **options)
        broken = F.expr("if(house = '000050', raise_error('on purpose'), __calibrated)").cast("double")
        return done.withColumn("__calibrated", broken)

    monkeypatch.setattr(score, "calibrated_rows", fails)


def test_the_old_partition_stands_and_the_staging_is_gone(world, failing):
    done = world.refused("on purpose", code=1)
    assert done.summary["status"] == "error"
    assert not leavings(world.out)


def test_the_next_run_removes_what_a_dead_one_has_staged(world):
    staged = world.out / "calibrated" / ".ds=2026-11-26.staging-dead"
    staged.mkdir()
    (staged / "part-0.parquet").write_text("half a file")
    old = pd.read_parquet(world.out / "calibrated" / "ds=2026-11-26", partitioning=None)
    assert len(old) == 240  # readers do not see it
    assert len(world.spark.read.parquet(str(world.out / "calibrated")).select("house").collect()) == 480
    world.ran()
    assert not staged.exists()


@contextlib.contextmanager
def disk(folder, options):
    """A small file system of its own over a folder; skipped, visibly, where it may not be mounted."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        # Hadoop has not closed the file that it could not write.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk(world):
    """The old table fits, the new one does not: exit 2, the old one stands."""
    rows = 60_000
    keys = {"house": [f"{i:06d}" for i in range(rows)], "person": 1}
    people = pd.DataFrame(keys).assign(score=np.random.default_rng(0).random(rows), label=0.5, w=1.0)
    old = {p.relative_to(world.out): p.read_bytes() for p in world.out.rglob("*") if p.is_file()}
    with disk(world.out, "size=900k"):
        for name, data in old.items():
            (world.out / name).parent.mkdir(parents=True, exist_ok=True)
            (world.out / name).write_bytes(data)
        world.write("scored", people)
        done = world.refused("No space left on device", code=2)
        assert "free some space" in done.error
        assert not list(world.out.rglob(".*staging*"))


def read_only(folder):
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)


@pytest.mark.parametrize("job", ["score", "calibrate"])
def test_an_output_that_may_not_be_written(world, job):
    if os.geteuid() == 0:  # to whom permissions do not apply
        sealed = world.root / "sealed"
        sealed.mkdir()
        with disk(sealed, "size=100k"):
            subprocess.run(["mount", "-o", "remount,ro", str(sealed)], check=True)
            world.refused("cannot", code=2, job=job, output={"path": str(sealed / "calibrated")})
        return
    read_only(world.out)
    world.refused("cannot", code=2, job=job)

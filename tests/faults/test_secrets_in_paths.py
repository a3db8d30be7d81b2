"""A secret that stands in a path opens the table, and is left nowhere."""

from __future__ import annotations

import shutil
from pathlib import Path

from .conftest import Done, World

SECRET = "hunter2hunter2"


def left_by(root: Path, *runs: Done) -> list[str]:
    """Where the secret stands: files by what is in them, and what the runs have printed."""
    files = [p for p in sorted(root.rglob("*")) if p.is_file() and p.name != "run.yaml"]
    found = [str(p.relative_to(root)) for p in files if SECRET.encode() in p.read_bytes()]
    found += [f"summary {run.summary}" for run in runs if SECRET in str(run.summary)]
    return found + [line for run in runs for line in run.log.splitlines() if SECRET in line]


def test_a_secret_in_every_path_of_a_configuration_is_left_nowhere(spark, ready, tmp_path):
    root = tmp_path / f"store;token={SECRET}"
    shutil.copytree(ready, root)
    world = World(spark, root)
    report = {"path": str(root / "report.html")}
    world.change("scored", lambda people: people.assign(score=people["score"].where(people.index != 3)))
    engine = {"engine": "lightgbm", "max_trees": 2}
    allowed = {"max_rejected_share": 1.0}
    done = world.run("calibrate", calibrator=engine, report=report, **allowed)
    assert done.exit_code == 0, done.summary
    assert (root / "report.html").exists()
    assert "token=***" in done.summary["paths"]["output"]
    gate = {"must_improve": False, "max_mc_error": 0.0}
    gated = world.run("calibrate", calibrator=engine, report=report, gate=gate, **allowed)
    assert gated.exit_code == 4
    missing = world.run("score", scored={"path": str(root / "nowhere"), "key": ["house", "person"]})
    assert missing.exit_code == 3
    assert "no such table" in missing.error
    drifted = world.run("audit", drift={"against": str(root / "model")})
    assert drifted.exit_code == 3
    assert "give secrets by Spark's settings" in drifted.error
    assert left_by(root, done, gated, missing, drifted) == []


def test_plans_that_spark_shows_hide_the_secrets_of_paths(spark, tmp_path):
    folder = tmp_path / f"plan;token={SECRET}"
    spark.range(3).write.parquet(str(folder))
    plan = spark.read.parquet(str(folder)).where("id > 1")._jdf.queryExecution().toString()
    assert "FileScan parquet" in plan
    assert SECRET not in plan

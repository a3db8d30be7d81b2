"""A small world to break: two tables, a model, and the output of an earlier run that must survive.

Every test goes through the command line in this process, so that message, exit code and counts are what an
operator would see; only Spark's session is shared.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import structlog
import yaml
from harness import QUICK_JAVA, ended_jobs

from tests.tiny import tiny_tables

ROOT = Path(__file__).resolve().parents[2]
KEY = ["house", "person"]
OLD_DAY = "2026-11-25"
DAY = "2026-11-26"
GROUPS: dict[str, Any] = {
    "min_share": 0.01,
    "columns": [{"column": "sex"}, {"column": "age", "bins": [0, 30, 60, 120]}, {"column": "job"}],
    "predicates": [{"name": "old women", "where": "sex = 2 AND age >= 60"}],
}


def people_table(rows: int = 240, seed: int = 1) -> pd.DataFrame:
    """Scores that are wrong by sex and age; keys with leading zeros."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"house": [f"0{i // 2:05d}" for i in range(rows)], "person": np.arange(rows) % 2 + 1}
    )
    table["score"] = rng.random(rows)
    table["sex"], table["age"] = rng.integers(1, 3, rows), rng.integers(16, 95, rows)
    table["job"] = rng.choice(["a", "b", "c"], rows)
    wrong = 0.25 * (table["sex"] == 2) - 0.2 * (table["age"] >= 60)
    table["label"] = (rng.random(rows) < np.clip(table["score"] + wrong, 0, 1)).astype(float)
    table["w"] = rng.integers(1, 4, rows).astype(float)
    return table


SCORED = [*KEY, "score", "label", "w"]
ATTRIBUTES = [*KEY, "sex", "age", "job"]


@dataclass(frozen=True)
class Done:
    """How a job ended."""

    exit_code: int
    summary: dict[str, Any]
    log: str

    @property
    def error(self) -> str:
        return str(self.summary["error"])


def content(folder: Path) -> dict[str, str]:
    """Every file below a folder, hidden ones too, by a hash of its bytes; but for the manifests of runs."""
    every = (path for path in sorted(folder.rglob("*")) if path.is_file())
    files = (path for path in every if not path.parent.name.endswith("_manifests"))
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def leavings(folder: Path) -> list[str]:
    """Hidden files and folders below a folder, but for the checksums that Hadoop puts beside files."""
    return [str(path) for path in folder.rglob(".*") if path.suffix != ".crc"]


def read(path: str | Path, key: list[str] = KEY) -> pd.DataFrame:
    """A published table in the order of its key."""
    return pd.read_parquet(path, partitioning=None).sort_values(key, ignore_index=True)


def run_job(spark: Any, *arguments: str) -> Done:
    """A job as ``jobs/NAME.py ARGUMENTS`` runs it; the session outlives it."""
    job, *rest = arguments
    script = str(ROOT / "jobs" / f"{job}.py")

    def end(_: Any, code: int) -> None:
        raise SystemExit(code)

    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch("mcspark.pipelines.job.finish", end),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", [script, *rest]),
        pytest.raises(SystemExit) as ended,
    ):
        runpy.run_path(script, run_name="__main__")
    structlog.reset_defaults()
    assert ended.value.code is not None
    return Done(int(ended.value.code), json.loads(out.getvalue().splitlines()[-1]), err.getvalue())


@dataclass
class World:
    """Input, model and old output below one folder."""

    spark: Any
    root: Path

    @property
    def out(self) -> Path:
        return self.root / "out"

    def change(self, name: str, how: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
        """Change the only file of a table."""
        file = self.root / name / "part-0.parquet"
        how(pd.read_parquet(file)).to_parquet(file, index=False)

    def write(self, name: str, table: pd.DataFrame, files: int = 1) -> None:
        """Replace a table."""
        shutil.rmtree(self.root / name, ignore_errors=True)
        (self.root / name).mkdir(parents=True)
        for i in range(files):
            table.iloc[i::files].to_parquet(self.root / name / f"part-{i}.parquet", index=False)

    def configure(self, **sections: Any) -> Path:
        """The configuration of this world, with sections merged into it."""
        plain: dict[str, Any] = {
            "scored": {"path": str(self.root / "scored"), "key": KEY, "weight": "w"},
            "attributes": [{"path": str(self.root / "attributes"), "key": KEY}],
            "groups": GROUPS,
            "calibrator": {
                "recipe": "paper",
                "engine": "lightgbm",
                "learning_rate": 0.3,
                "max_trees": 6,
                "early_stopping_rounds": 3,
                "score_bins": 10,
            },
            "evaluation": {"levels": [5, 10], "draws": 10},
            "output": {"path": str(self.out / "calibrated"), "partition": {"ds": DAY}},
            "model": {"path": str(self.root / "model")},
            "gate": {"must_improve": False},
        }
        for name, section in sections.items():
            old = plain.get(name)
            plain[name] = (
                {**old, **section} if isinstance(old, dict) and isinstance(section, dict) else section
            )
        file = self.root / "run.yaml"
        file.write_text(yaml.safe_dump(plain))
        return file

    def run(self, job: str = "score", *options: str, **sections: Any) -> Done:
        """Run a job on this world."""
        return run_job(self.spark, job, "--config", str(self.configure(**sections)), *options)

    def ran(self, job: str = "score", *options: str, **sections: Any) -> Done:
        """Run a job that must succeed: no row is lost, none is doubled, and no number is NaN."""
        done = self.run(job, *options, **sections)
        assert done.exit_code == 0, done.summary
        assert done.summary["status"] == "ok"
        rows, key = done.summary["rows"], sections.get("scored", {}).get("key", KEY)
        if "output" in done.summary["paths"]:
            output, rejected = self.output(done, key), self.rejected(done, key)
            assert (len(output), len(rejected)) == (rows["scored"], rows["rejected"])
            assert rows["in"] == rows["scored"] + rows["rejected"]
            assert not output.duplicated(key).any()
            assert output["calibrated_score"].between(0, 1).all()
        return done

    def refused(self, match: str, code: int = 3, job: str = "score", *options: str, **sections: Any) -> Done:
        """Run a job that must be refused: nothing at all has changed."""
        before = content(self.out), content(self.root / "model")
        done = self.run(job, *options, **sections)
        assert (done.exit_code, done.summary["exit_code"]) == (code, code), done.summary
        assert re.search(match, done.error, re.DOTALL), done.error
        assert (content(self.out), content(self.root / "model")) == before
        assert "Traceback" not in done.error
        return done

    def output(self, done: Done, key: list[str] = KEY) -> pd.DataFrame:
        return read(done.summary["paths"]["output"], key)

    def rejected(self, done: Done, key: list[str] = KEY) -> pd.DataFrame:
        return read(done.summary["paths"]["rejected"], key)


def small_model(spark: Any, people: pd.DataFrame) -> Any:
    """A calibrator by hand over the groups of the world."""
    from mcspark import GroupSet, MulticalibratorModel
    from mcspark.core.model.additive import AdditiveForm
    from mcspark.core.model.stages import Stage, Stages
    from mcspark.ml.cells.groups import with_categories

    plan = GroupSet.from_config(GROUPS)
    groups = plan.fit(with_categories(spark.createDataFrame(people), plan.families))
    rng = np.random.default_rng(7)
    form = AdditiveForm(
        thresholds=np.array([0.3, 0.7]),
        constant=0.01,
        base=rng.normal(0, 0.02, 3),
        curves=rng.normal(0, 0.05, (len(groups.names), 3)),
        pairs=np.array([[0, 2], [1, 4]]),
        pair_values=np.array([0.03, -0.04]),
    )
    return MulticalibratorModel(groups, Stages((Stage("identity", form, 5),), groups.names))


@pytest.fixture(scope="session")
def people() -> pd.DataFrame:
    return people_table()


@pytest.fixture(scope="session")
def ready(spark: Any, people: pd.DataFrame, tmp_path_factory: Any) -> Path:
    """The world before anything is broken: two days have been scored alike."""
    root: Path = tmp_path_factory.mktemp("world")
    world = World(spark, root)
    world.write("scored", people[SCORED])
    world.write("attributes", people[ATTRIBUTES])
    small_model(spark, people).save(str(root / "model"))
    with tiny_tables(spark):
        assert world.run().exit_code == 0
    for table in ("calibrated", "calibrated_rejected"):
        shutil.copytree(world.out / table / f"ds={DAY}", world.out / table / f"ds={OLD_DAY}")
    return root


@pytest.fixture
def world(spark: Any, ready: Path, tmp_path: Path) -> Iterator[World]:
    """A copy to break."""
    shutil.copytree(ready, tmp_path / "world")
    before = _caches(spark)  # Delta keeps one of each table that an earlier test has looked at
    with tiny_tables(spark):
        yield World(spark, tmp_path / "world")
    assert _caches(spark) <= before, "a cache was left behind"
    assert not spark.catalog.listTables(), "a view was left behind"


def _caches(spark: Any) -> set[int]:
    return set(spark.sparkContext._jsc.getPersistentRDDs().keySet())


@dataclass(frozen=True)
class Child:
    """A process that ran jobs by ``child.py``."""

    exit_code: int
    jobs: list[Done]
    told: list[dict[str, Any]]
    log: str


def run_child(
    fault: str,
    *jobs: list[str],
    master: str = "local[2]",
    conf: dict[str, str] | None = None,
    env: dict[str, str] | None = None,
    timeout: float = 600,
    **options: Any,
) -> Child:
    """Run jobs in a process of their own, with a fault."""
    settings = {
        "spark.driver.memory": "1g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.executor.extraJavaOptions": QUICK_JAVA, **(conf or {}),
    }  # fmt: skip
    words = " ".join(f"--conf {shlex.quote(f'{key}={value}')}" for key, value in settings.items())
    environ = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--master {master} {words} pyspark-shell"}
    environ |= {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_SUBMIT_OPTS": QUICK_JAVA}
    environ |= env or {}
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_ENV_LOADED", "SPARK_HOME"):
        environ.pop(name, None)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(jobs, file)
        file.flush()
        command = [sys.executable, str(Path(__file__).with_name("child.py")), fault, file.name]
        done = subprocess.run(
            command,
            env=environ,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            **options,
        )
    ended = ended_jobs(done.stdout)
    jobs_done = [Done(told["exit_code"], summary, done.stderr) for summary, told in ended]
    return Child(done.returncode, jobs_done, [told for _, told in ended], done.stderr)

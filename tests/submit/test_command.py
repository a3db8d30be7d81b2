"""The first minutes of a newcomer: the command ``mcspark`` from two tables to numbers, in real processes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from harness import environment
from small_tables import write_tables

from mcspark.acs.population import population_arrays

SPARK = (
    "--master",
    "local[2]",
    "--conf",
    "spark.ui.enabled=false",
    "--conf",
    "spark.sql.shuffle.partitions=4",
)


def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The console script, from an environment that does not lead to Spark by its PATH."""
    environ = {**environment({}), "PATH": os.defpath}
    command = Path(sys.executable).parent / "mcspark"
    return subprocess.run(
        [command, *map(str, arguments)], cwd=cwd, env=environ, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("newcomer")
    people = pd.DataFrame(population_arrays(3000, seed=12))
    people.loc[:99, "label"] = np.nan
    write_tables(folder, people)
    done = run("init", "scored", "attributes", "-o", "my.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "key     SERIALNO, SPORDER" in done.stdout
    return folder


def test_check_says_what_is_used_and_writes_nothing(home):
    before = sorted(home.rglob("*"))
    done = run("check", "--config", "my.yaml", *SPARK, cwd=home)
    assert done.returncode == 0, done.stderr[-3000:]
    summary = json.loads(done.stdout.splitlines()[-1])
    scored, attributes = summary["tables"]
    assert (summary["status"], summary["score"], summary["label"]) == ("ok", "score", "label")
    assert set(scored["key"]) == {"SERIALNO", "SPORDER"}
    assert set(attributes["groups"]) == {"RAC1P", "SEX", "AGEP"}
    detectable = summary["detectable"]
    assert (detectable["rows"], detectable["measured"]) == (3000, 1200)
    assert detectable["mc_error"]["20"] == pytest.approx(0.5 * math.sqrt(2 * 20 / (math.pi * 1200)), abs=1e-6)
    assert [p for p in sorted(home.rglob("*")) if p.suffix != ".log"] == before


def test_check_tells_a_column_that_is_not_there(home):
    done = run("check", "--config", "my.yaml", "--set", "scored.label=labl", *SPARK, cwd=home)
    assert done.returncode == 3
    assert "labl: missing, did you mean label?" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["exit_code"] == 3


def test_an_audit_and_what_show_says_about_it(home):
    settings = ("--set", "evaluation.draws=10", "--set", "evaluation.levels=[10, 20]")
    done = run("audit", "--config", "my.yaml", *settings, *SPARK, cwd=home)
    assert done.returncode == 0, done.stderr[-3000:]
    summary = json.loads(done.stdout.splitlines()[-1])
    error = summary["metrics"]["before"]["by_level"]["20"]["mc_error"]
    page = (home / summary["paths"]["report"]).read_text()
    assert f"{error:.4f}" in page
    assert (home / summary["paths"]["report"]).with_suffix(".md").is_file()
    for place in (summary["paths"]["metrics"], summary["paths"]["manifest"]):
        shown = run("show", place, cwd=home)
        assert shown.returncode == 0, shown.stderr
        assert f"{error:.4f}" in shown.stdout


def test_a_wrong_option_ends_at_once(home):
    done = run("audit", "--confg", "my.yaml", cwd=home)
    assert done.returncode == 2
    assert "--confg" in done.stderr

"""The jobs by the real `spark-submit`: exit codes, the last line of stdout, one process or several."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from harness import ROOT, submit
from small_tables import KEY, write_config, write_tables

from mcspark.acs.population import population_arrays
from mcspark.data.leases.claim import Claim
from mcspark.runtime.process.processes import this_process


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    table = pd.DataFrame(population_arrays(4000, seed=11))
    table.loc[:199, "label"] = np.nan
    return table


@pytest.fixture(scope="module")
def tables(people, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    write_tables(folder, people)
    return folder


@pytest.fixture(scope="module")
def calibrated(tables, tmp_path_factory):
    """The main job in local mode."""
    folder = tmp_path_factory.mktemp("calibrated")
    done = submit("jobs/calibrate.py", "--config", write_config(folder, tables))
    assert done.exit_code == 0, done.stderr[-3000:]
    return folder, done


def output(summary: dict[str, Any]) -> pd.DataFrame:
    return pd.read_parquet(summary["paths"]["output"]).sort_values(KEY, ignore_index=True)


def test_the_last_line_is_the_summary(calibrated):
    summary = calibrated[1].summary
    assert (summary["status"], summary["method"]) == ("ok", "trees")
    assert summary["rows"] == {**summary["rows"], "in": 4000, "scored": 4000, "rejected": 0, "labelled": 3800}
    assert summary["metrics"]["after"]["loss"] < summary["metrics"]["before"]["loss"]
    assert set(summary["metrics"]["after"]["by_level"]) == {"10", "20"}
    assert summary["seconds"]["total"] > 0
    for path in summary["paths"].values():
        assert Path(path.removeprefix("file:")).exists(), path
    manifest = json.loads(Path(summary["paths"]["manifest"].removeprefix("file:")).read_text())
    assert manifest["run_id"] == summary["run_id"]


def test_several_processes_and_shuffled_rows_give_the_same_scores(calibrated, people, tmp_path):
    write_tables(tmp_path / "tables", people.sample(frac=1, random_state=2), files=3)
    config = write_config(tmp_path, tmp_path / "tables")
    conf = {"spark.sql.shuffle.partitions": "5"}
    done = submit("jobs/calibrate.py", "--config", config, master="local-cluster[2,1,1024]", conf=conf)
    assert done.exit_code == 0, done.stderr[-3000:]
    local = calibrated[1].summary
    one, other = output(local), output(done.summary)
    assert one.drop(columns="calibrated_score").equals(other.drop(columns="calibrated_score"))
    np.testing.assert_allclose(one["calibrated_score"], other["calibrated_score"], rtol=0, atol=1e-12)
    for when in ("before", "after"):
        for m in ("10", "20"):
            found = [s["metrics"][when]["by_level"][m]["mc_error"] for s in (local, done.summary)]
            assert found[0] == pytest.approx(found[1], abs=1e-9)


def test_scoring_needs_no_lightgbm(calibrated, tables, tmp_path):
    """Neither in the cluster nor to be had; and the scores are those that calibrate wrote."""
    config = write_config(tmp_path, tables, model={"path": str(calibrated[0] / "model")})
    nowhere = tmp_path / "ivysettings.xml"
    nowhere.write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers><filesystem name="none">'
        f'<artifact pattern="{tmp_path}/nothing/[artifact].[ext]"/></filesystem></resolvers></ivysettings>'
    )
    conf = {"spark.jars.ivy": str(tmp_path / "ivy"), "spark.jars.ivySettings": str(nowhere)}
    done = submit("jobs/score.py", "--config", config, conf=conf, env={"MCSPARK_JARS": None})
    assert done.exit_code == 0, done.stderr[-3000:]
    assert (done.summary["rows"]["scored"], done.summary["unseen_categories"]) == (4000, {})
    assert "metrics" not in done.summary
    expected = output(calibrated[1].summary)
    pd.testing.assert_frame_equal(output(done.summary), expected, check_exact=True)


def test_an_audit_of_the_output(calibrated, tables, tmp_path):
    """The calibrated score, audited as a score, shows the errors that calibrate said it has after."""
    config = write_config(
        tmp_path, tables,
        scored={"path": calibrated[1].summary["paths"]["output"], "key": KEY, "score": "f1"},
        split={"column": "split"},
    )  # fmt: skip
    (tmp_path / "audited").mkdir()
    table = output(calibrated[1].summary).rename(columns={"calibrated_score": "f1"})
    table = table[table["split"].isin(["fit", "test"])]
    table.to_parquet(tmp_path / "audited" / "part.parquet", index=False)
    done = submit("jobs/audit.py", "--config", config, "--set", f"scored.path={tmp_path / 'audited'}")
    assert done.exit_code == 0, done.stderr[-3000:]
    after = calibrated[1].summary["metrics"]["after"]["by_level"]["20"]
    found = done.summary["metrics"]["before"]["by_level"]["20"]
    assert found["mc_error"] == pytest.approx(after["mc_error"], abs=1e-9)


def without_java(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a job where any attempt to start a JVM leaves a mark."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexit 9\n")
    java.chmod(0o755)
    environ = {**os.environ, "JAVA_HOME": str(java.parent.parent)}
    done = subprocess.run(
        [sys.executable, str(ROOT / arguments[0]), *arguments[1:]],
        capture_output=True, text=True, check=False, timeout=120, cwd=ROOT, env=environ,
    )  # fmt: skip
    assert not (tmp_path / "started").exists()
    return done


def test_a_bad_configuration_is_told_without_a_jvm(tables, tmp_path):
    config = write_config(tmp_path, tables)
    done = without_java(
        tmp_path, "jobs/calibrate.py", "--config", str(config),
        "--set", "calibrator.learning_rat=0.2", "--set", "split.test=2",
    )  # fmt: skip
    assert done.returncode == 2
    line = json.loads(done.stdout.splitlines()[-1])
    assert (line["exit_code"], line["status"]) == (2, "configuration")
    assert "learning_rat" in line["error"]
    assert "learning_rate" in line["error"]
    assert "split.test" in line["error"]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("job", ["calibrate", "score", "audit"])
def test_help_starts_no_jvm(tmp_path, job):
    done = without_java(tmp_path, f"jobs/{job}.py", "--help")
    assert done.returncode == 0
    assert "--config" in done.stdout
    assert "--set" in done.stdout


def test_input_that_breaks_its_contract_is_exit_3(calibrated, people, tmp_path):
    write_tables(tmp_path / "tables", pd.concat([people, people.iloc[:1]]))
    config = write_config(calibrated[0], tmp_path / "tables")
    before = output(calibrated[1].summary)
    done = submit("jobs/calibrate.py", "--config", config)
    assert (done.exit_code, done.summary["exit_code"], done.summary["status"]) == (3, 3, "contract")
    assert "1 key(s)" in done.summary["error"]
    assert "2024HU000000000" in done.summary["error"]
    assert "Traceback" not in done.stderr
    manifest = calibrated[0] / "_calibrated_manifests" / f"{done.summary['run_id']}.json"
    told = json.loads(manifest.read_text())
    assert (told["job"], told["status"], told["exit_code"]) == ("calibrate", "contract", 3)
    assert told["error"] == done.summary["error"]
    assert output(calibrated[1].summary).equals(before)


def test_a_gate_that_is_not_met_is_exit_4(calibrated, tables):
    config = write_config(calibrated[0], tables, gate={"max_mc_error": 0.0})
    before = output(calibrated[1].summary)
    done = submit("jobs/calibrate.py", "--config", config, "--set", "calibrator.max_trees=2")
    assert (done.exit_code, done.summary["exit_code"], done.summary["status"]) == (4, 4, "gate")
    assert "nothing was published" in done.summary["error"]
    assert output(calibrated[1].summary).equals(before)


def test_an_output_held_by_another_run_is_exit_5(calibrated, tables):
    folder = calibrated[0]
    claim = Claim("other", "", True, this_process())
    lease = folder / ".calibrated.leases" / "other.lease"
    lease.parent.mkdir()
    lease.write_text(json.dumps(asdict(claim)))
    try:
        done = submit("jobs/score.py", "--config", write_config(folder, tables))
    finally:
        shutil.rmtree(lease.parent)
    assert (done.exit_code, done.summary["exit_code"], done.summary["status"]) == (5, 5, "held")
    assert "run other" in done.summary["error"]

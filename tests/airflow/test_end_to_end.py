"""`airflow dags test` with the real Airflow, the real `spark-submit` and real census records."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
import yaml
from conftest import DAG_ID, DAY, HOME, ROOT, airflow, documented

KEY = ["SERIALNO", "SPORDER"]
PAPER = {"recipe": "paper", "learning_rate": 0.3}
"""The trees of the tests' figures."""
NEIGHBOUR = "2026-11-25"


@pytest.fixture(scope="module")
def environment(project_bin) -> dict[str, str]:
    """Of an Airflow worker on a small machine: `spark-submit` on the PATH, and Spark's own settings."""
    conf = HOME / "spark"
    conf.mkdir(exist_ok=True)
    prepared = project_bin.parent.glob("lib/python*/site-packages/pyspark/conf/spark-env.sh")
    for file in prepared:
        shutil.copy(file, conf)
    settings = {"spark.driver.memory": "2g", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4"}
    (conf / "spark-defaults.conf").write_text("".join(f"{k} {v}\n" for k, v in settings.items()))
    shutil.copy(ROOT / "conf" / "spark" / "log4j2.properties", conf)
    return {"PATH": f"{project_bin}{os.pathsep}{os.environ['PATH']}", "SPARK_CONF_DIR": str(conf)}


@pytest.fixture(scope="module")
def place(shared_data, project_bin, tmp_path_factory) -> Path:
    """Folder with a day's scored people of Delaware, their attributes, and a day published before."""
    folder = tmp_path_factory.mktemp("delaware")
    script = Path(__file__).parent / "scripts" / "census_day.py"
    records = shared_data / "data" / "acs2024" / "p_10.parquet"
    subprocess.run([project_bin / "python", script, records, folder, DAY], check=True)
    neighbour = folder / "calibrated" / f"ds={NEIGHBOUR}"
    neighbour.mkdir(parents=True)
    (neighbour / "part-0.parquet").write_bytes(b"published yesterday")
    configuration = {
        "scored": {"path": str(folder / "scored"), "key": KEY},
        "attributes": [{"path": str(folder / "attributes"), "key": KEY}],
        "groups": {
            "min_share": 0.05,
            "columns": [{"column": "SEX"}, {"column": "AGEP", "bins": [0, 30, 50, 120]}, {"column": "SCHL"}],
        },
        "calibrator": {**PAPER, "max_trees": 30, "early_stopping_rounds": 10, "score_bins": 30},
        "evaluation": {"levels": [10, 20], "draws": 20},
        "output": {"path": str(folder / "calibrated")},
        "model": {"path": str(folder / "model")},
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(configuration))
    return folder


def run_dag(
    place: Path, environment: dict[str, str], *options: str, good: bool = True, **more: str
) -> dict[str, str]:
    """Run the DAG for the day by the documented command; returns the state of each task."""
    command = documented("airflow")[1]
    assert command[:5] == ["airflow", "dags", "test", DAG_ID, DAY]
    places = {"$PWD": str(ROOT), "/etc/mcspark/my.yaml": str(place / "run.yaml")}
    for name, there in places.items():
        command = [word.replace(name, there) for word in command]
    airflow(*command[1:], *options, env={**environment, **more}, check=good)
    return dict(rows("SELECT task_id, state FROM task_instance"))


def rows(query: str) -> list[tuple]:
    with sqlite3.connect(HOME / "airflow.db") as connection:
        return connection.execute(query).fetchall()


def content(folder: Path) -> dict[str, str]:
    """Every file below a folder by digest; of Parquet all but the footer, which each JVM orders its way."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(lasting(path)).hexdigest() for path in files}


def lasting(path: Path) -> bytes:
    data = path.read_bytes()
    return data[: -8 - int.from_bytes(data[-8:-4], "little")] if data.endswith(b"PAR1") else data


def manifests(place: Path, table: str) -> list[dict]:
    return [json.loads(f.read_text()) for f in sorted((place / table).glob(f"_ds-{DAY}_manifests/*.json"))]


@pytest.fixture(scope="module")
def published(database, place, environment) -> dict[str, str]:
    """States of the tasks after a run whose gate holds."""
    connection = [word.replace("spark://HOST:7077", "local[2]") for word in documented("airflow")[0]]
    airflow(*connection[1:])
    return run_dag(place, environment)


def test_audit_calibrate_gate_publish(published, place, project_bin):
    assert published == dict.fromkeys(("audit", "calibrate", "gate", "publish"), "success")
    (audited, scored) = manifests(place, "calibrated")
    (calibrated,) = manifests(place, "calibrated_candidate")
    assert [m["job"] for m in (audited, calibrated, scored)] == ["audit", "calibrate", "score"]
    assert scored["rows"]["scored"] == scored["rows"]["in"] > 1000
    # The candidate and what was published are the same rows by the same model.
    tables = (place / name / f"ds={DAY}" for name in ("calibrated_candidate", "calibrated"))
    assert same_rows(project_bin / "python", *tables)


def same_rows(python: Path, one: Path, other: Path) -> bool:
    """Whether two tables hold the same rows; read by the project's Python, since Airflow's has no Parquet."""
    script = (
        "import sys, pandas as pd\n"
        f"key = {KEY!r}\n"
        "one, other = (pd.read_parquet(path).sort_values(key, ignore_index=True) for path in sys.argv[1:])\n"
        "sys.exit(0 if len(one) > 1000 and one.equals(other) else 1)"
    )
    command = [str(python), "-c", script, str(one), str(other)]
    return subprocess.run(command, check=False).returncode == 0


def test_the_asset_has_an_event_with_rows_and_metrics(published, place):
    (scored,) = (m for m in manifests(place, "calibrated") if m["job"] == "score")
    (calibrated,) = manifests(place, "calibrated_candidate")
    ((name, extra),) = rows("SELECT a.name, e.extra FROM asset_event e JOIN asset a ON a.id = e.asset_id")
    told = json.loads(extra)
    assert (name, told["partition"], told["rows"]) == ("multicalibrated_scores", DAY, scored["rows"])
    assert told["metrics"] == calibrated["metrics"]
    assert told["metrics"]["after"]["loss"] < told["metrics"]["before"]["loss"]
    assert told["calibration"] == calibrated["run_id"]


def test_a_failing_gate_stops_the_publish_and_a_second_run_changes_nothing(published, place, environment):
    kept = ("calibrated", "model", "scored", "attributes")
    skip = ("--mark-success-pattern", "audit")  # which has nothing new to say
    before = {name: data(place / name) for name in kept}
    states = run_dag(place, environment, *skip, good=False, MCSPARK_GATE__MAX_MC_ERROR="0.000001")
    assert states == {
        "audit": "success", "calibrate": "success", "gate": "failed", "publish": "upstream_failed"
    }  # fmt: skip
    assert {name: data(place / name) for name in kept} == before
    assert [m["job"] for m in manifests(place, "calibrated")].count("score") == 1
    assert set(run_dag(place, environment, *skip).values()) == {"success"}
    assert {name: data(place / name) for name in kept} == before
    assert [m["job"] for m in manifests(place, "calibrated")].count("score") == 2


def data(folder: Path) -> dict[str, str]:
    """Content by place and part, without what is new in each run: names of files, records of the run."""
    return {
        re.sub(r"(part-\d+)-[^/]*", r"\1", name): digest
        for name, digest in content(folder).items()
        if "_manifests/" not in name and not name.endswith((".crc", "run.json", "_mcspark.json"))
    }

"""The real Airflow on a SQLite database of its own, and the `spark-submit` of the project's environment."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DAGS = ROOT / "jobs" / "dags"
DAG_ID = "multicalibration"
DAY = "2026-11-26"

if importlib.util.find_spec("airflow") is None:
    collect_ignore_glob = ["test_*.py"]  # the project's own environment, which cannot hold Airflow
else:
    # Airflow reads its settings when it is imported.
    HOME = Path(tempfile.mkdtemp(prefix="airflow-"))
    os.environ |= {
        "AIRFLOW_HOME": str(HOME),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        # Most of a short job is spent in compiling Java: the quick compiler alone nearly halves it.
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m",
        "AIRFLOW_CONN_SPARK_HERE": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder that holds `data/acs2024/…`; the test is skipped where it is absent."""
    folder = Path(os.environ.get("MCSPARK_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no shared data at {folder}: set MCSPARK_SHARED")
    return folder


@pytest.fixture(scope="session")
def project_bin() -> Path:
    """The `bin` folder of the project's environment: its `spark-submit` and its Python."""
    folder = Path(os.environ.get("MCSPARK_BIN", ROOT / ".venv" / "bin"))
    assert (folder / "spark-submit").is_file(), f"no spark-submit in {folder}: set MCSPARK_BIN"
    return folder


@pytest.fixture(scope="session")
def dags() -> Any:
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(str(DAGS))
    assert bag.import_errors == {}
    assert sorted(bag.dags) == [DAG_ID, f"{DAG_ID}_backfill", f"{DAG_ID}_history"]
    return bag.dags


@pytest.fixture(scope="session")
def dag(dags) -> Any:
    return dags[DAG_ID]


@pytest.fixture(scope="session")
def database() -> None:
    """Airflow's metadata in a new SQLite file."""
    airflow("db", "migrate")


def documented(name: str) -> list[list[str]]:
    """Words of each line of the page's block behind `<!-- command: name -->`."""
    behind = (ROOT / "docs/operate/airflow.md").read_text().partition(f"<!-- command: {name} -->\n```sh\n")[2]
    return [shlex.split(line) for line in behind.partition("\n```")[0].splitlines()]


def airflow(*arguments: str, env: dict[str, str] | None = None, check: bool = True) -> str:
    """What the command `airflow` printed; `check` wants the exit code 0, or else another one."""
    command = [str(Path(sys.executable).parent / "airflow"), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=900, env={**os.environ, **(env or {})}
    )
    said = done.stdout + done.stderr
    assert (done.returncode == 0) is check, f"exit code {done.returncode}: {said[-6000:]}"
    return said

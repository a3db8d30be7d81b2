"""Fixtures that every tier shares: one local Spark session, and the folder with the real ACS data."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent

# One run of the gate says what the next one says; `--hypothesis-profile=search` tries other inputs each time.
settings.register_profile("gate", derandomize=True)
settings.register_profile("search", derandomize=False)
settings.load_profile("gate")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder that holds `data/acs2024/…`; the test is skipped where it is absent."""
    folder = Path(os.environ.get("MCSPARK_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no shared data at {folder}: set MCSPARK_SHARED")
    return folder


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local session for the whole run, with the classes of LightGBM, Delta Lake and Iceberg."""
    from mcspark.runtime.session import spark_session, stopped  # unit tests never import Spark

    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    features = ("delta", "iceberg")
    # Ivy's cache is not made for two processes that fill it at the same time.
    with one_at_a_time(tmp_path_factory.getbasetemp().parent / "ivy.lock"):
        session = spark_session("mcspark-tests", settings, engine="auto", features=features)
    with stopped(session):
        session.sparkContext.setLogLevel("ERROR")
        yield session


@contextlib.contextmanager
def one_at_a_time(file: Path) -> Iterator[None]:
    """Let the other processes that run these tests wait until the block ends."""
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield

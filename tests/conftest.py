"""Fixtures that every tier shares: one local Spark session, and the folder with the real ACS data."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder that holds `data/acs2024/…`; the test is skipped where it is absent."""
    folder = Path(os.environ.get("MCSPARK_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no shared data at {folder}: set MCSPARK_SHARED")
    return folder


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local session for the whole run, with the LightGBM classes on its class path."""
    from pyspark.sql import SparkSession  # unit tests never import Spark

    from mcspark.runtime.jars import add_lightgbm

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors use the Python of the tests
    session = (
        SparkSession.builder.master("local[2]")
        .appName("mcspark-tests")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    add_lightgbm(session)
    yield session
    session.stop()

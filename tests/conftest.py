"""Fixtures that every tier shares: one local Spark session, and the folder with the real ACS data."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness import QUICK_JAVA
from hypothesis import settings

from tests.tiny import TINY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent

# One run of the gate says what the next one says; `--hypothesis-profile=search` tries other inputs each time.
settings.register_profile("gate", derandomize=True)
settings.register_profile("search", derandomize=False)
settings.load_profile("gate")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what only SynapseML can show, in an environment whose Spark it has no jars for."""
    if item.get_closest_marker("synapseml") and find_spec("synapse") is None:
        pytest.skip("SynapseML is not installed: Maven Central has no jars of it for this Spark")


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
    from mcspark.runtime.session import CORRECTNESS, spark_session, stopped  # unit tests never import Spark

    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    # Another Spark has run these plans at Spark's own values already.
    settings |= TINY if os.environ.get("MCSPARK_TEST_TINY", "0") == "1" else {}
    features = ("delta", "iceberg")
    # Where Spark insists on ANSI SQL, as serverless ones do, results must be the same.
    ansi = os.environ.get("MCSPARK_TEST_ANSI", "0") == "1"
    CORRECTNESS["spark.sql.ansi.enabled"] = str(ansi).lower()
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


@pytest.fixture(params=["false", "true"])
def ansi(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """The test runs with ANSI SQL off and on."""
    name = "spark.sql.ansi.enabled"
    before = str(spark.conf.get(name))
    spark.conf.set(name, request.param)
    yield request.param
    assert spark.conf.get(name) == request.param
    spark.conf.set(name, before)

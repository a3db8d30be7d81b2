"""The Spark configuration written for a machine where nobody has configured Spark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mcspark.runtime import local


def sourced_java_home(spark_env: Path, environ: dict[str, str]) -> str:
    """`JAVA_HOME` after the shell has read the file, as `bin/spark-class` does."""
    script = f'set -a; . "{spark_env}"; set +a; printf %s "${{JAVA_HOME:-}}"'
    return subprocess.run(
        ["/bin/bash", "-c", script], env=environ, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture
def spark_env(tmp_path: Path) -> Path:
    local.write_conf(tmp_path, local.conf_files(Path("/a folder/java")))
    return tmp_path / "spark-env.sh"


def test_java_is_set_only_where_there_is_none(spark_env: Path, tmp_path: Path) -> None:
    assert sourced_java_home(spark_env, {"PATH": str(tmp_path)}) == "/a folder/java"
    assert sourced_java_home(spark_env, {"PATH": str(tmp_path), "JAVA_HOME": "/own"}) == "/own"
    (tmp_path / "java").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "java").chmod(0o755)
    assert sourced_java_home(spark_env, {"PATH": str(tmp_path)}) == ""


def test_no_spark_env_without_a_packaged_java() -> None:
    assert "spark-env.sh" not in local.conf_files(None)


def test_files_of_the_operator_stay(tmp_path: Path) -> None:
    own = tmp_path / "spark-defaults.conf"
    own.write_text("spark.driver.memory 16g\n")
    lines = local.write_conf(tmp_path, local.conf_files(None))
    assert own.read_text() == "spark.driver.memory 16g\n"
    assert any(line.startswith("kept") and str(own) in line for line in lines)
    assert (tmp_path / "log4j2.properties").is_file()


def test_its_own_files_are_renewed(tmp_path: Path) -> None:
    local.write_conf(tmp_path, local.conf_files(Path("/old")))
    local.write_conf(tmp_path, local.conf_files(Path("/new")))
    assert "/new" in (tmp_path / "spark-env.sh").read_text()


@pytest.mark.parametrize("variable", ["SPARK_CONF_DIR", "SPARK_HOME"])
def test_spark_is_configured_by_a_defaults_file(tmp_path: Path, variable: str) -> None:
    folder = tmp_path if variable == "SPARK_CONF_DIR" else tmp_path / "conf"
    folder.mkdir(exist_ok=True)
    assert not local.spark_is_configured({variable: str(tmp_path)})
    (folder / "spark-defaults.conf").touch()
    assert local.spark_is_configured({variable: str(tmp_path)})


def test_spark_is_configured_by_submit_arguments(tmp_path: Path) -> None:
    environ = {"SPARK_HOME": str(tmp_path), "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"}
    assert local.spark_is_configured(environ)

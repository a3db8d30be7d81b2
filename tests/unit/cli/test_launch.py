"""The command line that starts a job, without starting it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mcspark.cli.launch import SCRIPT, SparkOptions, command, spark_submit
from mcspark.errors import ConfigurationError
from mcspark.runtime import java


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A Spark that somebody has installed, and has not configured."""
    monkeypatch.setattr(java, "works", lambda _: True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "spark-submit").touch()
    return tmp_path


def test_the_job_and_its_options_come_last(home):
    options = SparkOptions("local[4]", ["spark.driver.memory=8g"], "--jars 'a b.jar' --name x")
    line, environ = command(
        "audit", ["--config", "my.yaml"], options, {"SPARK_HOME": str(home), "JAVA_HOME": "/java"}
    )
    assert line[0] == str(home / "bin" / "spark-submit")
    assert line[-4:] == [str(SCRIPT), "audit", "--config", "my.yaml"]
    assert line[-9:-4] == ["spark.driver.memory=8g", "--jars", "a b.jar", "--name", "x"]
    memory = [word for word in line if word.startswith("spark.driver.memory=")]
    assert memory == ["spark.driver.memory=4g", "spark.driver.memory=8g"]  # the last one wins
    assert environ["PYSPARK_PYTHON"] == sys.executable
    assert SCRIPT.is_file()


def test_what_somebody_has_configured_stays(home):
    (home / "conf").mkdir()
    (home / "conf" / "spark-defaults.conf").touch()
    given = {"SPARK_HOME": str(home), "JAVA_HOME": "/java", "PYSPARK_PYTHON": "/other/python"}
    line, environ = command("score", [], SparkOptions(), given)
    assert line == [str(home / "bin" / "spark-submit"), str(SCRIPT), "score"]
    assert environ == given


def test_no_spark_is_told(home, tmp_path):
    with pytest.raises(ConfigurationError, match="SPARK_HOME=/nowhere holds none"):
        spark_submit({"SPARK_HOME": "/nowhere", "PATH": str(home / "bin")})
    assert Path(spark_submit({})).parent == Path(sys.executable).parent


@pytest.mark.parametrize("conf", ["spark.driver.memory", "=8g"])
def test_a_setting_without_a_value_is_told(conf):
    with pytest.raises(ConfigurationError, match="write KEY=VALUE"):
        SparkOptions(conf=[conf]).arguments()


def test_open_quotes_are_told():
    with pytest.raises(ConfigurationError, match="check its quotes"):
        SparkOptions(more="--name 'x").arguments()


def test_a_spark_elsewhere_needs_no_spark_submit_and_no_java():
    options = SparkOptions(remote="sc://host:15002")
    line, environ = command("score", ["--config", "my.yaml"], options, {"PATH": ""})
    assert line == [sys.executable, str(SCRIPT), "score", "--config", "my.yaml"]
    assert environ["SPARK_REMOTE"] == "sc://host:15002"
    assert command("score", [], SparkOptions(), {"SPARK_REMOTE": "sc://two"})[0] == [*line[:3]]


def test_options_of_spark_submit_have_no_place_elsewhere():
    options = SparkOptions("local[2]", ["a=b"], "--name x", "sc://host")
    with pytest.raises(ConfigurationError, match="--conf, --master, --name: of spark-submit"):
        command("score", [], options, {})

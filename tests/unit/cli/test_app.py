"""The command ``mcspark``: what it hands on, what it tells at once, and its exit codes."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import mcspark
from mcspark.cli import app as module
from mcspark.errors import ConfigurationError

JOBS = ("calibrate", "score", "audit", "backfill", "compare", "check", "prepare-acs", "benchmark")


@pytest.fixture
def run(monkeypatch):
    launched = []
    monkeypatch.setattr(module, "launch", lambda *call: launched.append(call))

    def invoke(*arguments):
        return CliRunner().invoke(module.app, arguments, env={"COLUMNS": "140", "TERM": "dumb"}), launched

    return invoke


def test_every_job_and_tool_is_listed(run):
    done, _ = run("--help")
    assert done.exit_code == 0
    for name in (*JOBS, "show", "init", "history"):
        assert name in done.stdout


def test_the_version(run):
    done, _ = run("--version")
    assert (done.exit_code, done.stdout) == (0, f"mcspark {mcspark.__version__}\n")


@pytest.mark.parametrize("job", JOBS)
def test_help_is_that_of_the_job_and_starts_nothing(run, job):
    done, launched = run(job, "--help")
    assert done.exit_code == 0
    assert "--master" in done.stdout
    assert {"prepare-acs": "--task", "benchmark": "--rows"}.get(job, "--config") in done.stdout
    assert launched == []


def test_options_of_spark_are_taken_out_and_the_rest_is_handed_on(run):
    done, launched = run(
        "calibrate", "--config", "my.yaml", "--master", "local[2]", "--set", "split.seed=3",
        "--conf", "spark.a=1", "--set", "split.test=0.2", "--submit", "--name x", "--conf", "spark.b=2",
    )  # fmt: skip
    assert done.exit_code == 0
    [(job, arguments, options)] = launched
    assert job == "calibrate"
    assert arguments == ["--config", "my.yaml", "--set", "split.seed=3", "--set", "split.test=0.2"]
    assert options.arguments() == [
        "--master", "local[2]", "--conf", "spark.a=1", "--conf", "spark.b=2", "--name", "x"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "arguments", [("audit", "--confg", "x"), ("check", "--for", "nothing"), ("benchmark", "--rows", "many")]
)
def test_wrong_options_are_told_before_spark_starts(run, arguments):
    done, launched = run(*arguments)
    assert done.exit_code == 2
    assert launched == []
    assert arguments[1] in done.stderr


def test_what_the_user_can_act_on_is_one_message_and_its_code(run, monkeypatch):
    def refuse(*_):
        raise ConfigurationError("no Java")

    monkeypatch.setattr(module, "launch", refuse)
    done, _ = run("audit")
    assert (done.exit_code, done.stderr) == (2, "mcspark: no Java\n")
    done, _ = run("show", "/nowhere")
    assert done.exit_code == 3
    assert "nothing is there" in done.stderr


def test_the_shell_completes_commands():
    words = {"_MCSPARK_COMPLETE": "complete_bash", "COMP_WORDS": "mcspark sco", "COMP_CWORD": "1"}
    done = CliRunner().invoke(module.app, [], prog_name="mcspark", env=words)
    assert done.stdout.split() == ["score", "score-local"]

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from mcspark.acs.persons import check_inputs
from mcspark.cli import prepare_acs
from mcspark.errors import ConfigurationError
from mcspark.runtime import session


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):
    def no_session(*_: object) -> None:
        raise AssertionError("a JVM would have been started")

    monkeypatch.setattr(session, "spark_session", no_session)
    app = typer.Typer()
    app.command()(prepare_acs)

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "120"})

    return call


def test_help_needs_no_jvm(run) -> None:
    result = run("--help")
    assert result.exit_code == 0
    for option in ("--input", "--task", "--output", "--train", "--seed"):
        assert option in result.stdout


def test_a_missing_file_is_told_before_a_jvm_starts(run, tmp_path: Path) -> None:
    there = tmp_path / "here.csv"
    there.touch()
    result = run(
        "--input", str(there), "gone.csv", "--task", "income", "--output", str(tmp_path / "out")
    )  # fmt: skip
    assert result.exit_code == 2
    assert "1 of 2 input files do not exist, the first is gone.csv" in result.stderr
    last = json.loads(result.stdout.splitlines()[-1])
    assert last["status"] == "configuration"


def test_an_unknown_task_is_a_usage_error(run, tmp_path: Path) -> None:
    assert run("--input", "a.csv", "--task", "health", "--output", str(tmp_path)).exit_code == 2


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ([], "no input file is named"),
        (["csv_pny.zip"], "unpack it first"),
        (["p_36.feather"], "must end in .csv, .csv.gz or .parquet"),
        (["{0}", "{0}"], "is named twice"),
    ],
)
def test_names_that_cannot_be_read_are_refused(names: list[str], problem: str, tmp_path: Path) -> None:
    there = tmp_path / "p.csv"
    there.touch()
    with pytest.raises(ConfigurationError, match=problem):
        check_inputs([name.format(there) for name in names])

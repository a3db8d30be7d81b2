"""Log lines: one object a line on stderr, with the run's id, without secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import structlog

from mcspark.runtime.process.logs import configure_logs


@pytest.fixture(autouse=True)
def fresh_structlog() -> Iterator[None]:
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def test_json_lines_carry_the_run_and_leave_stdout_alone(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json", run_id="r1")
    structlog.get_logger().info("joined", rows=3)
    out, err = capsys.readouterr()
    line = json.loads(err)
    assert out == ""
    assert (line["event"], line["rows"], line["run_id"], line["level"]) == ("joined", 3, "r1", "info")


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_secrets_are_hidden(capsys: pytest.CaptureFixture[str], log_format: str) -> None:
    configure_logs(log_format, run_id="r1")
    structlog.get_logger().info(
        "reading s3a://me:hunter2@bucket/x",
        **{
            "fs.s3a.secret.key": "hunter2",
            "path": "s3a://me:hunter2@b/y",
            "inner": {"url": "s3a://me:hunter2@b"},
        },
    )
    err = capsys.readouterr().err
    assert "hunter2" not in err
    assert "***" in err


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_tracebacks_hide_secrets_too(capsys: pytest.CaptureFixture[str], log_format: str) -> None:
    configure_logs(log_format, run_id="r1")
    try:
        raise ValueError("cannot read s3a://me:hunter2@bucket/x")
    except ValueError:
        structlog.get_logger().exception("failed")
    told = capsys.readouterr().err
    assert "hunter2" not in told
    assert "ValueError" in told


def test_debug_lines_only_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json", run_id="r1")
    structlog.get_logger().debug("quiet")
    assert capsys.readouterr().err == ""
    configure_logs("json", run_id="r1", verbose=True)
    structlog.get_logger().debug("loud")
    assert "loud" in capsys.readouterr().err

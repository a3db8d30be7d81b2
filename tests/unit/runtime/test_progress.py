"""The live lines of stages, in a process of its own on a pseudo-terminal, and their absence elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

SCRIPT = """
import sys, time
from types import SimpleNamespace
import structlog
from mcspark.pipelines.run import Run
from mcspark.runtime.process.logs import configure_logs
from mcspark.runtime.process.progress import tell

configure_logs(sys.argv[1], run_id="r1")
context = SimpleNamespace(
    getLocalProperty=lambda key: None, setLocalProperty=lambda key, value: None,
    setJobGroup=lambda group, what, interruptOnCancel: None,
)
run = Run("compare", "r1", SimpleNamespace(), SimpleNamespace(sparkContext=context))
tell("outside of any stage")
with run.stage("join", "join the attributes") as told:
    told["rows"] = 123456
    structlog.get_logger().warning("rows rejected", table="a[red]b", score_nan=3)
with run.stage("fit", "learn the calibrator"):
    for tree in (1, 250):
        tell(f"{tree} of at most 5,000 trees")
        time.sleep(0.4)
    tell("round 1: 20 trees, held-out loss 0.050000 → 0.030000", lasting=True)
try:
    with run.stage("sweep", "compare the methods"):
        with run.stage("read", "read the schemas"):
            pass
        for block in range(1, 5):
            tell(f"validate: {block} of 40 blocks", progress=(block, 40))
            time.sleep(0.3)
        raise ValueError
except ValueError:
    print('{"status": "ok"}', flush=True)
"""


def on_a_terminal(log_format: str) -> str:
    """What comes out where stdout and stderr are one terminal, 100 columns wide."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    environ.pop("NO_COLOR", None)
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, log_format], stdin=theirs, stdout=theirs, stderr=theirs, env=environ
    ) as process:
        os.close(theirs)
        found = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            found += part
        assert process.wait(60) == 0
    os.close(ours)
    return found.decode()


def plain(text: str) -> str:
    """Without colours and movements of the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def standing(text: str) -> list[str]:
    """The lines that are there in the end: what is behind the last erasure of each."""
    lines = [re.split(r"\r\x1b\[2K\r?", line)[-1] for line in text.split("\r\n")]
    return [plain(line).strip() for line in lines if plain(line).strip()]


@pytest.fixture(scope="module")
def shown() -> str:
    return on_a_terminal("text")


def test_the_live_line_tells_trees_trials_and_the_time_left(shown):
    live = plain(shown)
    assert re.search(r"learn the calibrator 0 s +250 of at most 5,000 trees", live)
    assert re.search(r"compare the methods 1 s .*00:1\d validate: 4 of 40 blocks", live)
    assert "outside of any stage" not in live


def test_what_stays_is_a_line_a_stage_and_the_summary_comes_last(shown):
    lines = standing(shown)
    assert re.search(r"\[warning *\] rows rejected +.*a\[red\]b", lines[0])
    assert re.fullmatch(r"✓ join the attributes  0\.\d s  rows 123,456", lines[1])
    assert lines[2] == "round 1: 20 trees, held-out loss 0.050000 → 0.030000"
    assert re.fullmatch(r"✓ learn the calibrator  \d\.\d s", lines[3])
    assert re.fullmatch(r"✓ read the schemas  0\.\d s", lines[4])
    assert re.fullmatch(r"✗ compare the methods  \d\.\d s", lines[5])
    assert lines[6:] == ['{"status": "ok"}']
    assert shown.endswith('\r{"status": "ok"}\r\n')


def test_the_cursor_is_left_alone(shown):
    assert "\x1b[?25l" not in shown


def test_json_has_no_live_lines_on_a_terminal_either():
    found = on_a_terminal("json")
    assert "\x1b" not in found
    assert "trees" not in found
    assert found.count('"event": "stage done"') == 3


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_pipes_get_plain_lines(log_format):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, log_format], capture_output=True, text=True, timeout=60, check=True,
        env={**os.environ, "TERM": "xterm-256color"},
    )  # fmt: skip
    assert "\x1b" not in done.stderr
    assert "trees" not in done.stderr
    assert done.stdout == '{"status": "ok"}\n'
    # Begin and end of four stages, and the warning.
    assert len(done.stderr.splitlines()) == 9


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    from mcspark.runtime.process import streams

    class Terminal:
        def isatty(self):
            return True

    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert streams.terminal() is None
    monkeypatch.setenv("TERM", "xterm")
    assert streams.terminal() is sys.stderr

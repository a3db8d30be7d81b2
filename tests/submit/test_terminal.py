"""A job on a real terminal, through `spark-submit`: live lines of its stages, an untouched summary."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess

import pandas as pd
import pytest
from harness import DEFAULTS, ROOT, _spark_submit, environment
from small_tables import write_config, write_tables

from mcspark.acs.population import population_arrays

JOB = (str(ROOT / "jobs/calibrate.py"), "--config")


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    write_tables(folder / "in", pd.DataFrame(population_arrays(2000, seed=5)))
    return write_config(folder, folder / "in")


def command(*arguments):
    settings = [word for key, value in DEFAULTS.items() for word in ("--conf", f"{key}={value}")]
    return [_spark_submit(), "--master", "local[2]", *settings, *map(str, arguments)]


def test_live_lines_on_a_terminal_and_a_whole_summary(config):
    ours, theirs = pty.openpty()
    environ = environment({"TERM": "xterm-256color", "NO_COLOR": None})
    found = b""
    with subprocess.Popen(
        command(*JOB, config), stdin=theirs, stdout=theirs, stderr=theirs, env=environ, cwd=ROOT
    ) as process:
        os.close(theirs)
        try:
            while part := os.read(ours, 65536):
                found += part
        except OSError:
            pass  # the other end is closed
        assert process.wait(60) == 0, found.decode(errors="replace")[-3000:]
    os.close(ours)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", found.decode(errors="replace"))
    for stage in ("join the attributes", "learn the calibrator", "write the calibrated scores"):
        assert re.search(rf"[⠁-⣿] {stage}.* \d+ s", plain)  # live
        assert re.search(rf"✓ {stage}.*  \d+\.\d s", plain)  # done
    assert "growing at most 15 trees" in plain
    assert re.search(r"round 1: \d+ trees, held-out loss 0\.\d{6} → 0\.\d{6}", plain)
    # Spark's own last words follow on such a terminal; nothing of a live line is on the summary's.
    (summary,) = re.findall(r"[\r\n](\{.*\})\r\n", found.decode(errors="replace"))
    assert json.loads(summary)["status"] == "ok"


def test_nothing_of_it_where_stderr_is_a_pipe_though_stdout_is_a_terminal(config):
    ours, theirs = pty.openpty()
    environ = environment({"TERM": "xterm-256color"})
    done = subprocess.run(
        command(ROOT / "jobs/calibrate.py", "--config", config, "--set", "scored.score=missing"), check=False,
        stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=300, env=environ, cwd=ROOT,
    )  # fmt: skip
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 3
    assert "\x1b" not in done.stderr
    assert "read the schemas" in done.stderr

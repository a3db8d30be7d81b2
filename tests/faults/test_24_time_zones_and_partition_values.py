"""Partition values that are no values. What a host in New York makes of a day: `test_strange_host.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from .conftest import ROOT

BAD = [
    ("None", "a scheduler writes for a missing value"), ("''", "is empty"), ("2026-13-01", "does not exist"),
    ("2026-02-30", "does not exist"), ("../../etc", "would leave the folder"), ("'{{ ds }}'", "unrendered"),
    ("'a/b'", "holds '/'"), ("'2026-11-26 '", "is padded"), ("26.11.2026", "is no date"),
]  # fmt: skip


@pytest.fixture
def no_java(tmp_path):
    """An environment in which an attempt to start Java leaves a mark."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexit 9\n")
    java.chmod(0o755)
    return {**os.environ, "JAVA_HOME": str(java.parent.parent)}


@pytest.mark.parametrize("place", ["output", "scored"])
def test_bad_partition_values_are_exit_2(world, place):
    """All of them; that no JVM was started for it is seen below."""
    for value, reason in BAD:
        done = world.refused(reason, 2, "score", "--set", f"{place}.partition.ds={value}")
        assert f"{place}.partition" in done.error


def test_no_jvm_is_started_for_it(world, no_java, tmp_path):
    command = [sys.executable, str(ROOT / "jobs" / "score.py"), "--config", str(world.configure())]
    done = subprocess.run(
        [*command, "--set", "output.partition.ds=2026-13-01"],
        env=no_java, capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 2
    assert json.loads(done.stdout.splitlines()[-1])["exit_code"] == 2
    assert not (tmp_path / "started").exists()

"""One run at a time on an output, and a dead one in nobody's way."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mcspark.data.lease import Lease
from mcspark.errors import ConfigurationError, OutputHeldError


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "out")


def lease_file(place):
    return Path(place).parent / f".{Path(place).name}.lease"


def content(place):
    return json.loads(lease_file(place).read_text())


def leave_behind(place, **more):
    holder = {
        "run_id": "dead",
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "expires": time.time() + 600,
    }
    lease_file(place).write_text(json.dumps(holder | more))


def test_second_run_is_refused_and_the_lease_is_given_back(spark, place):
    with Lease(spark, place, "r1"):
        with pytest.raises(
            OutputHeldError, match=rf"run r1 \({socket.gethostname()}, process {os.getpid()}\)"
        ):
            Lease(spark, place, "r2").__enter__()
        with Lease(spark, place + "/ds=2026-11-26", "r3"):
            pass
    assert not lease_file(place).exists()
    with pytest.raises(RuntimeError), Lease(spark, place, "r2"):
        raise RuntimeError
    with Lease(spark, place, "r4"):
        pass


def test_of_many_at_once_one_wins(spark, place):
    start, won, refused, done = threading.Barrier(6), [], [], threading.Event()

    def run(i):
        start.wait()
        try:
            with Lease(spark, place, f"r{i}"):
                won.append(i)
                done.wait(30)
        except OutputHeldError:
            refused.append(i)
        if len(refused) == 5:
            done.set()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert len(refused) == 5


def test_lease_of_a_dead_process_is_taken_over(spark, place, tmp_path):
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    leave_behind(place, pid=child.pid)
    with Lease(spark, place, "r1"):
        assert content(place)["run_id"] == "r1"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("left", "stale"),
    [
        ({}, False),
        ({"host": "elsewhere", "pid": 2**22 + 1}, False),
        ({"host": "elsewhere", "expires": 1.0}, True),
        ({"expires": 1.0}, True),
    ],
)
def test_only_a_stale_lease_is_taken_over(spark, place, left, stale):
    leave_behind(place, **left)
    if stale:
        with Lease(spark, place, "r1"):
            pass
    else:
        with pytest.raises(OutputHeldError, match="run dead"), Lease(spark, place, "r1"):
            pass
        assert content(place)["run_id"] == "dead"


def test_lease_that_is_not_written_yet_is_held(spark, place):
    lease_file(place).touch()
    with pytest.raises(OutputHeldError, match="another run is writing there"), Lease(spark, place, "r1"):
        pass


def test_lease_is_renewed(spark, place):
    with Lease(spark, place, "r1", holds_for=1.5):
        first = content(place)["expires"]
        time.sleep(2)
        assert content(place)["run_id"] == "r1"
        assert content(place)["expires"] > first + 0.3


def test_a_lost_lease_is_noticed_and_left_to_its_holder(spark, place):
    with Lease(spark, place, "r1") as lease:
        lease.check()
        leave_behind(place, run_id="thief")
        with pytest.raises(OutputHeldError, match=r"run thief .* took the output over"):
            lease.check()
    assert content(place)["run_id"] == "thief"


def test_place_that_cannot_be_written(spark, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot make this folder"):
        Lease(spark, str(tmp_path / "file" / "out"), "r1").__enter__()
    with pytest.raises(ConfigurationError, match="root of a file system"):
        Lease(spark, "file:///", "r1")

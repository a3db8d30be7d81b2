"""One run at a time on an output, and a dead one in nobody's way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from local_hadoop import Disk, session

from mcspark.data.leases import lease as leases
from mcspark.data.leases.claim import Claim
from mcspark.data.leases.lease import HOLDS_FOR, Lease
from mcspark.errors import ConfigurationError, OutputHeldError
from mcspark.runtime.process.processes import this_process

DAY = "ds=2026-11-26"


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "out")


def mark(place, run_id="dead"):
    return Path(place).parent / f".{Path(place).name}.leases" / f"{run_id}.lease"


def leave(place, *, age=0.0, part="", text=None, holds=True, run_id="dead", **process):
    """A mark of another run, of this process if nothing else is said."""
    file = mark(place, run_id)
    file.parent.mkdir(exist_ok=True)
    claim = Claim(run_id, part, holds, replace(this_process(), **process))
    file.write_text(json.dumps(asdict(claim)) if text is None else text)
    then = time.time() - age
    os.utime(file, (then, then))


def takes(spark, place, part="", run_id="r1"):
    """Whether a run gets the lease; it leaves nothing then."""
    try:
        with Lease(spark, f"{place}/{part}", run_id):
            assert json.loads(mark(place, run_id).read_text())["holds"]
    except OutputHeldError:
        return False
    assert not list(Path(place).parent.glob(".*"))
    return True


def test_a_mark_that_is_withdrawn_while_it_is_read_is_in_nobodys_way(place):
    leave(place, run_id="r0", holds=False)
    disk, looks = Disk(), []

    def withdraw(operation, path):
        if operation == "status" and path.endswith("/r0.lease"):
            looks.append(path)
            if len(looks) == 2:  # first its time, then what it says
                mark(place, "r0").unlink()

    disk.hook = withdraw
    assert takes(session(disk), place)
    assert len(looks) >= 2


def test_the_second_run_is_refused_and_the_lease_is_given_back(spark, place):
    with Lease(spark, place, "r1"):
        with pytest.raises(OutputHeldError, match=rf"run r1 \(.+, process {os.getpid()}\) is writing there"):
            Lease(spark, place, "r2").__enter__()
        assert mark(place, "r1").exists()
        assert not mark(place, "r2").exists()
    with pytest.raises(RuntimeError), Lease(spark, place, "r2"):
        raise RuntimeError
    assert takes(spark, place)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [("", DAY, False), (DAY, "", False), (DAY, "ds=2026-11-25", True), (DAY, f"{DAY}/hour=1", False)],
)
def test_a_partition_excludes_the_whole_table_and_no_other_partition(spark, place, one, other, both):
    with Lease(spark, f"{place}/{one}", "r1"):
        if both:
            with Lease(spark, f"{place}/{other}", "r2"):
                pass
        else:
            with pytest.raises(OutputHeldError, match="run r1"):
                Lease(spark, f"{place}/{other}", "r2").__enter__()


@pytest.mark.parametrize("parts", [[""] * 6, [DAY] * 6, ["", "ds=1", "ds=2", "ds=3", "", "ds=1"]])
def test_of_many_at_once_one_wins(spark, place, parts):
    start, won, refused, done = threading.Barrier(6), [], [], threading.Event()

    def run(i):
        start.wait()
        try:
            with Lease(spark, f"{place}/{parts[i]}", f"r{i}"):
                won.append(parts[i])
                done.wait(0.5)
        except OutputHeldError:
            refused.append(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [""] or len(set(won)) == len(won) >= 1
    assert len(won) == 1 or "" not in won


def ended():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


@pytest.mark.parametrize("part", ["", DAY])
def test_the_lease_of_a_process_that_has_ended_is_taken_over(spark, place, part):
    for held in ("", DAY):
        leave(place, part=held, pid=ended())
        assert takes(spark, place, part), held


def test_a_process_that_has_the_number_of_a_dead_one_does_not_hold_its_lease(spark, place):
    leave(place, started=this_process().started - 1)
    assert takes(spark, place)


def test_a_process_that_nobody_has_buried_holds_nothing(spark, place):
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
    leave(place, pid=child.pid, started=0)
    assert takes(spark, place)
    child.wait()


@pytest.mark.parametrize("table", ["", "boot other pid:[4026531836]", "another container"])
@pytest.mark.parametrize(("age", "taken"), [(HOLDS_FOR / 2, False), (HOLDS_FOR + 5, True)])
def test_where_a_process_cannot_be_seen_only_its_silence_counts(spark, place, table, age, taken):
    """Of another host or another container: its number may be that of any process here."""
    leave(place, table=table, pid=ended(), age=age)
    assert takes(spark, place) == taken
    leave(place, table=table, pid=os.getpid(), age=age)
    assert takes(spark, place) == taken


def test_a_living_process_of_this_host_holds_however_long_it_was_silent(spark, place):
    leave(place, age=HOLDS_FOR * 100)
    assert not takes(spark, place)


def test_clocks_of_hosts_do_not_matter(spark, place, monkeypatch):
    """Ages are told by the clock of the file system alone."""
    leave(place, table="another host", age=HOLDS_FOR / 2)
    for wrong in (-1e8, 1e8):
        monkeypatch.setattr(time, "time", lambda wrong=wrong: wrong)
        assert not takes(spark, place)


BROKEN = [
    "",
    "x" * 10_001,
    "[]",
    "{}",
    "{" * 5000,
    '{"process": {}}',
    json.dumps({"run_id": 1, "process": 2}),
]
GOOD = asdict(Claim("dead", "", True, this_process()))
BROKEN += [
    json.dumps(GOOD | {"process": GOOD["process"] | change})
    for change in ({"pid": []}, {"pid": 0}, {"pid": 2**31}, {"started": -1}, {"started": "1"}, {"host": 1})
]
BROKEN += [json.dumps(GOOD | change) for change in ({"part": "../x"}, {"holds": 1}, {"run_id": "a/b"})]


@pytest.mark.parametrize("text", BROKEN)
def test_a_lease_that_cannot_be_read_holds_for_its_time_and_no_longer(spark, place, text):
    leave(place, text=text)
    with pytest.raises(OutputHeldError, match=r"unreadable lease .+ counts as dead in 5 minutes, or"):
        Lease(spark, place, "r1").__enter__()
    leave(place, text=text, age=HOLDS_FOR + 5)
    assert takes(spark, place)
    leave(place, text=text, age=HOLDS_FOR + 5)
    assert takes(spark, place, DAY)


def test_what_a_write_that_was_cut_short_has_left_goes_in_time(spark, place):
    leave(place, run_id=".half", text="")
    half = mark(place, ".half").rename(mark(place, ".half").with_suffix(".writing-1"))
    with Lease(spark, place, "r1"):
        assert half.exists()
    old = time.time() - HOLDS_FOR - 5
    os.utime(half, (old, old))
    assert takes(spark, place)


def test_a_run_that_has_not_decided_yet_is_waited_for(spark, place):
    """Of two that begin at once the first by name goes on; the other one withdraws."""
    leave(place, holds=False, run_id="r2")
    with pytest.raises(OutputHeldError, match="run r2"):
        Lease(spark, place, "r3").__enter__()
    threading.Timer(0.3, mark(place, "r2").unlink).start()
    assert takes(spark, place)


def test_a_run_that_may_wait_does(spark, place):
    leave(place)
    threading.Timer(0.3, mark(place).unlink).start()
    with Lease(spark, place, "r1", wait=10):
        pass


def test_a_lease_is_renewed(spark, place):
    with Lease(spark, place, "r1", holds_for=1.0):
        first = mark(place, "r1").stat().st_mtime
        time.sleep(0.5)
        assert mark(place, "r1").stat().st_mtime > first


def test_a_lost_lease_is_noticed_and_left_to_its_holder(spark, place):
    with Lease(spark, place, "r1", holds_for=0.5) as lease:
        lease.check()
        mark(place, "r1").unlink()
        leave(place, run_id="thief")
        with pytest.raises(OutputHeldError, match=r"run thief .* took the output over"):
            lease.check()
        time.sleep(0.3)  # it is not renewed either
        assert not mark(place, "r1").exists()
    assert mark(place, "thief").exists()


def test_a_renewal_that_comes_too_late_gives_way(spark, place, monkeypatch):
    """The other run has taken over between the look and the write."""
    lease = Lease(spark, place, "r1").__enter__()
    monkeypatch.setattr(lease._files, "exists", lambda path: True)
    leave(place, run_id="thief")
    assert not lease._renewed()
    with pytest.raises(OutputHeldError):
        lease.check()
    lease.__exit__(None, None, None)
    assert [p.name for p in mark(place).parent.iterdir()] == ["thief.lease"]


def test_a_place_that_cannot_be_written(spark, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot make this folder"):
        Lease(spark, str(tmp_path / "file" / "out"), "r1").__enter__()
    with pytest.raises(ConfigurationError, match="root of a file system"):
        Lease(spark, "file:///", "r1")


def test_an_object_store_needs_no_rename_for_a_lease(tmp_path):
    spark = session(Disk(rename=False))
    place = str(tmp_path / "out")
    with Lease(spark, place, "r1"), pytest.raises(OutputHeldError, match="run r1"):
        Lease(spark, place, "r2").__enter__()
    assert not list(tmp_path.iterdir())


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("needs the right to mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_no_lease(spark, small_disk):
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(b"x" * 4096)
    before = sorted(small_disk.iterdir())
    with pytest.raises(ConfigurationError, match="cannot be written"):
        Lease(spark, str(small_disk / "out"), "r1").__enter__()
    assert sorted(small_disk.iterdir()) == before
    ballast.unlink()
    assert takes(spark, str(small_disk / "out"))


HOLD = """
import sys
sys.path.insert(0, sys.argv[1])
from local_hadoop import Disk, session
from mcspark.data.leases.lease import Lease
with Lease(session(Disk()), sys.argv[2], "inside"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_run_in_another_container_keeps_its_lease(spark, place):
    """Its process is number 1 of its own PID namespace, on this very host."""
    here = str(Path(__file__).parent)
    child = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", HOLD, here, place],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        if child.stdout.readline() != "held\n":
            pytest.skip(f"needs the right to make namespaces: {child.stderr.read()}")
        process = json.loads(mark(place, "inside").read_text())["process"]
        assert process["pid"] == 1
        assert process["host"] == this_process().host
        assert not takes(spark, place)
        child.communicate("", timeout=60)
        assert takes(spark, place)
    finally:
        child.kill()
        child.wait()


def test_the_waiting_times_are_what_the_manual_says():
    assert (HOLDS_FOR, HOLDS_FOR / leases.BEATS) == (300, 30)

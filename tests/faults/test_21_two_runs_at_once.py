"""Two runs on one partition at the same moment."""

from __future__ import annotations

import threading

from mcspark.data.publishing.sink import Publication

from .conftest import OLD_DAY


def test_the_second_one_exits_5_and_files_never_mix(world, monkeypatch, people):
    """While the first run has its tables staged, a second one on the same partition begins."""
    publish, others = Publication.publish, []

    def meanwhile(self):
        if not others:
            others.append(None)
            others[0] = world.run()
            others.append(world.run(output={"partition": {"ds": OLD_DAY}}))  # another partition is free
        publish(self)

    monkeypatch.setattr(Publication, "publish", meanwhile)
    first = world.ran()
    second, neighbour = others
    assert (second.exit_code, second.summary["status"]) == (5, "held")
    assert f"run {first.summary['run_id']}" in second.error
    assert "is writing there; wait for it" in second.error
    assert neighbour.exit_code == 0
    assert len(world.output(first)) == len(people)
    assert len(list((world.out / "calibrated" / "ds=2026-11-26").glob("part-*"))) == 1
    assert not list(world.out.rglob(".*lease*"))


def test_of_many_at_once_all_but_one_are_refused(spark, world):
    from mcspark.data.leases.lease import Lease
    from mcspark.errors import OutputHeldError

    place, ended, barrier = str(world.out / "calibrated" / "ds=2026-11-26"), [], threading.Barrier(6)

    def contend(i):
        barrier.wait()
        try:
            with Lease(spark, place, f"run{i}"):
                ended.append(0)
                barrier.wait()
        except OutputHeldError as error:
            ended.append(error.exit_code)
            barrier.wait()

    threads = [threading.Thread(target=contend, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == [0, 5, 5, 5, 5, 5]

"""The same partition again, and a neighbour: the same rows, nothing else touched.

That a second calibration gives the same bits, metrics too, is tested with the main job.
"""

from __future__ import annotations

from .conftest import DAY, OLD_DAY, content


def test_the_same_rows_again_and_one_manifest_a_run(world):
    day = world.out / "calibrated" / f"ds={DAY}"
    neighbour = world.out / "calibrated" / f"ds={OLD_DAY}"
    manifests = world.out / "calibrated" / f"_ds-{DAY}_manifests"
    old, before, count = content(neighbour), None, len(list(manifests.glob("*.json")))
    for _ in range(2):
        done = world.ran()
        output = world.output(done)
        assert before is None or output.equals(before)
        before = output
    assert content(neighbour) == old
    assert len(list(manifests.glob("*.json"))) == count + 2
    names = {p.name for p in (world.out / "calibrated").iterdir()}
    assert names == {day.name, neighbour.name, manifests.name}


def test_a_neighbour_that_is_run_again_leaves_this_one_alone(world):
    day = world.out / "calibrated" / f"ds={DAY}"
    before = content(day), content(world.out / "calibrated_rejected" / f"ds={DAY}")
    world.change("scored", lambda t: t.assign(score=t["score"] / 2))
    world.ran(output={"partition": {"ds": OLD_DAY}})
    assert (content(day), content(world.out / "calibrated_rejected" / f"ds={DAY}")) == before

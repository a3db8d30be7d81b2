"""Two runs, step by step: one is held up, or dies, before each of its steps, while the other one works."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from two_runs import FOREVER, World, begin, check_next, ends, sweep

from mcspark.errors import OutputHeldError


@pytest.fixture
def folder(tmp_path):
    """In memory where that can be: what is tried is the order of the steps, a hundred thousand of them."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir=memory) as made:
        yield Path(made)


@pytest.fixture(params=[True])
def world(folder, monkeypatch, request):
    (folder / "world").mkdir()
    made = World(folder / "world", monkeypatch)
    made.has_old = request.param
    return made


first_too = pytest.mark.parametrize("world", [False, True], ids=["first run", "later run"], indirect=True)
"""With and without tables of an earlier run."""


@pytest.mark.parametrize(("first", "second"), [("calibrate", "calibrate"), ("score", "calibrate")])
def test_of_two_publications_one_is_whole_and_the_other_one_refused(world, first, second):
    def after(a, b):
        ends(world, a, b)
        assert {type(run.error) for run in (a, b)} in ({type(None)}, {type(None), OutputHeldError})
        world.is_whole({run.name for run in (a, b) if run.error is None})
        check_next(world, a, b)

    assert sweep(world, getattr(world, first), getattr(world, second), after) > 80


def test_of_a_partition_and_the_whole_table_one_is_whole_and_the_other_one_refused(world):
    def after(a, b):
        ends(world, a, b)
        assert [a.error, b.error].count(None) >= 1
        # The whole table is at the place of its partitions: what is in both would be in one partition twice.
        whole, found = world.published(""), world.published("1")
        assert (whole == {"b", "whole"} and found == {0}) if b.error is None else whole == {0}
        world.is_whole({"a"}, "" if b.error is None else "1") if found != {0} else None
        assert not world.leavings()

    assert sweep(world, world.calibrate, world.calibrate_all, after) > 80


def test_a_score_beside_a_calibration_reads_a_whole_model(world):
    world.has_old = True

    def after(a, b):
        ends(world, a, b)
        assert (a.error, b.error) == (None, None)
        assert world.published("2") == {"b", "whole"}
        check_next(world, a)

    assert sweep(world, world.calibrate, world.score_next_day, after) > 80


@first_too
@pytest.mark.parametrize("second", ["refused", "calibrate"])
def test_after_a_death_at_any_step_all_is_old_or_all_is_new(world, second):
    """The next run dies at a step of its own, or is refused; the one after it mends what both have left."""

    def after(a, b):
        b.die()
        mender = world.actor("c", world.refused)
        ends(world, mender)
        assert mender.error is None
        world.is_whole({"old", "a", "b"})
        found = world.published() - {"whole", 0}
        assert world.model_of() == found
        check_next(world, a, b)

    steps = (14, FOREVER)
    assert sweep(world, world.calibrate, getattr(world, second), after, is_killed=True, inner=steps) > 80


def test_a_score_with_the_model_of_a_dead_run_mends_it(world):
    """Of another partition: the output of the dead run is mended by the next run there, to the same end."""

    def after(a, b):
        b.die()
        ends(world, last := world.actor("c", world.score_next_day))
        assert last.error is None
        assert world.published("2") == {"c", "whole"}
        model = world.model_of()
        ends(world, world.actor("d", world.refused))
        assert world.model_of() == model == world.published() - {"whole"}
        check_next(world, a, b, last)

    steps = (14, FOREVER)
    assert sweep(world, world.calibrate, world.score_next_day, after, is_killed=True, inner=steps) > 80


def test_mending_beside_a_third_run(world):
    """One run is dead at any step, another one mends, and is held up while a third one publishes."""

    def after(a, b):
        c = world.actor("c", world.calibrate)
        ends(world, c, b)
        assert [b.error, c.error].count(None) >= 1
        world.is_whole({"old", "a", "b", "c"})
        check_next(world, a, b, c)

    assert (
        sweep(world, world.calibrate, world.calibrate, after, is_killed=True, inner=(3, 8, 12, 16, 20)) > 200
    )


def test_a_run_that_was_thought_dead_changes_nothing_when_it_wakes_up(world):
    """Held up before any look at its lease for longer than that holds, while another run has published."""
    refused = 0
    for i in count(1):
        begin(world)
        a, b = world.actor("a", world.calibrate, looks=True), world.actor("b", world.calibrate)
        if not a.go(i):
            break
        world.gone.add(a.pid)
        ends(world, b)
        assert b.error is None
        ends(world, a)
        refused += a.error is not None  # else all that it had to do was done
        assert world.published() == {"b", "whole"}
        assert world.model_of() == {"b"}
        world.gone.clear()
        check_next(world, a, b)
    assert refused >= 5


def test_pointers_of_an_object_store_are_all_old_or_all_new_after_a_death(folder, monkeypatch):
    (folder / "world").mkdir()
    world = World(folder / "world", monkeypatch, rename=False)
    for world.has_old in (False, True):

        def after(a, b):
            ends(world, b)
            assert b.error is None
            world.is_whole({"old", "a"})
            assert world.has_old <= (world.published() != {0})
            check_next(world, a, b)

        assert sweep(world, world.calibrate, world.refused, after, is_killed=True, inner=(FOREVER,)) > 30

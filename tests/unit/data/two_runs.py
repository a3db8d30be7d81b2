"""Two runs, step by step: every place at which one of them may be held up, or die, while the other one works.

The runs are the code of the jobs on a local disk, with plain files for tables. A step is one call of the file
system that changes something. One run is stopped before its i-th step, the other one works until its end or
its j-th step, the first one goes on to its end or is dead, and the other one ends; for all i and j.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

from greenlet import getcurrent, greenlet
from local_hadoop import Disk, Table, session, write_files

from mcspark.data.formats.pointer import pointed_run
from mcspark.data.leases import lease as leases
from mcspark.data.leases import recovery
from mcspark.data.leases.lease import Lease, settled
from mcspark.data.publishing import sink, writers
from mcspark.data.publishing.sink import Publication
from mcspark.data.publishing.target import Target
from mcspark.errors import ConfigurationError, OutputHeldError
from mcspark.runtime.files import files as runtime_files
from mcspark.runtime.files.files import Files
from mcspark.runtime.process.processes import Process

CHANGES = {"mkdirs", "create", "write", "rename", "delete", "part", "wait"}
FOREVER = 10**9


class Dead(BaseException):
    """The process is gone: nothing of it runs any more."""


class Actor:
    """A run that stops before a given step."""

    def __init__(self, world, name, body, looks=False):
        self.world, self.name, self.looks = world, name, looks
        self.pid = next(world.pids)
        self.error, self.left, self.is_dead, self.taken = None, 0, False, 0
        self.greenlet = greenlet(lambda: self.live(body))
        world.actors[self.greenlet] = self

    def live(self, body):
        try:
            body(self.name)
        except (OutputHeldError, ConfigurationError) as error:
            self.error = error
        except Dead:
            pass

    def go(self, steps=FOREVER):
        """Go on for so many steps, or to the end; whether there is more to do."""
        self.left = steps
        self.greenlet.switch()
        return not self.greenlet.dead

    def die(self):
        """Stop for good; what is left of the process cannot touch the disk."""
        self.world.gone.add(self.pid)
        self.is_dead = True
        if not self.greenlet.dead:
            self.greenlet.throw(Dead)

    def step(self, operation, path):
        if self.is_dead:
            raise Dead
        if self.looks:
            counts = operation == "wait" or (operation == "exists" and path.endswith(f"/{self.name}.lease"))
        else:
            counts = operation in CHANGES
        if not counts:
            return
        while self.left <= 0 or operation == "wait":
            self.world.main.switch()
            if self.is_dead:
                raise Dead
            if operation == "wait":
                break
        self.left -= 1
        self.taken += 1


def _is_half(folder):
    """Whether nothing but halves of leases is in a folder."""
    return all(".lease.writing-" in path.name for path in folder.iterdir())


class Watched:
    """The operating system, whose renames are steps."""

    def __init__(self, world):
        self.world = world

    def __getattr__(self, name):
        return getattr(os, name)

    def rename(self, source, target):
        self.world.hook("rename", source)
        os.rename(source, target)

    def replace(self, source, target):
        self.world.hook("rename", source)
        os.replace(source, target)


class World:
    """An output with rejected rows and a model below one folder, on a disk where runs can be stopped."""

    def __init__(self, folder, patch, rename=True):
        self.folder, self.disk = folder, Disk(rename)
        self.spark = session(self.disk)
        self.pids, self.actors, self.gone, self.main = count(1), {}, set(), getcurrent()
        self.clock = 0.0
        self.models = {"old"}
        self.disk.hook = self.hook
        patch.setattr(runtime_files, "os", Watched(self))
        patch.setitem(writers.WRITERS, "parquet", write_files(self.disk))
        patch.setattr(sink, "commit_of", lambda *_: None)
        patch.setattr(sink, "rows_written", lambda spark, folder, _: spark.read.parquet(folder).count())
        clock = SimpleNamespace(sleep=self.sleep, monotonic=lambda: self.clock, time=time.time)
        patch.setattr(leases, "time", clock)
        thread = SimpleNamespace(ident=None, start=lambda: None)  # nothing is renewed
        patch.setattr(leases, "threading", SimpleNamespace(Event=threading.Event, Thread=lambda **_: thread))
        for module in (leases, recovery):
            patch.setattr(module, "log", SimpleNamespace(info=self.ignore, warning=self.ignore))
        patch.setattr(leases, "this_process", lambda: Process("h", "t", self.here(), 0))
        patch.setattr(Process, "is_gone", lambda process: process.pid in self.gone)

    def ignore(self, *_, **__):
        pass

    def here(self):
        actor = self.actors.get(getcurrent())
        return actor.pid if actor else 1_000_000

    def hook(self, operation, path):
        if actor := self.actors.get(getcurrent()):
            actor.step(operation, path)

    def sleep(self, seconds):
        """A run that waits lets the other one work."""
        self.clock += seconds
        self.hook("wait", "")

    def clear(self):
        self.actors.clear()
        self.gone.clear()
        for path in self.folder.iterdir():
            shutil.rmtree(path)

    def actor(self, name, job, looks=False):
        self.models.add(name)
        return Actor(self, name, job, looks)

    def target(self, day):
        return Target(str(self.folder / "out"), partition={"ds": day} if day else None, replaces_all=not day)

    @property
    def model(self):
        return self.folder / "model"

    def calibrate(self, run, day="1"):
        self.run(run, day, makes_model=self.disk.scheme == "file")

    def score(self, run, day="1"):
        self.run(run, day, reads_model=True)

    def calibrate_all(self, run):
        self.calibrate(run, "")

    def score_next_day(self, run):
        self.score(run, "2")

    def refused(self, run):
        with Lease(self.spark, self.target("1").held, run):
            pass

    def run(self, run, day, *, makes_model=False, reads_model=False):
        target = self.target(day)
        with Lease(self.spark, target.held, run) as lease, Publication(self.spark, run, lease) as one:
            if reads_model:
                assert self.read_model(run) in self.models
            one.stage(target, Table(run), rows=2)
            one.stage(target.beside("rejected"), Table(run), rows=2)
            if makes_model:
                one.stage_folder(str(self.model), lambda folder: self.write_model(folder, run))
            one.publish()

    def write_model(self, folder, run):
        for name in ("trees_0.txt", "model.json"):
            Files(self.spark, folder).write_text(f"{folder}/{name}", run)

    def read_model(self, run):
        for _ in range(3):
            settled(self.spark, str(self.model), run)
            try:
                return Files(self.spark, str(self.model)).read_text(f"{self.model}/model.json")
            except FileNotFoundError:
                continue
        raise AssertionError("no model to be read")

    def published(self, day="1"):
        """What readers find, each once: all of one run, if it is whole."""
        target, found = self.target(day), set()
        for leaf in (target.leaf, target.beside("rejected").leaf):
            folder = leaf
            if self.disk.scheme != "file":
                folder = f"{leaf}/_runs/{pointed_run(Files(self.spark, leaf), leaf) or 'none'}"
            parts = list(Path(folder).glob("part-*"))
            found |= {part.read_text() for part in parts} | {"whole" if len(parts) == 2 else len(parts)}
        return found

    def model_of(self):
        files = [path for name in ("trees_0.txt", "model.json") if (path := self.model / name).exists()]
        assert len(files) in (0, 2)
        return {file.read_text() for file in files}

    def leavings(self):
        """Whatever is hidden, but for half a lease, which goes when it is as old as a dead one."""
        left = [path for path in self.folder.rglob(".*") if ".lease.writing-" not in path.name]
        return [
            str(p.relative_to(self.folder))
            for p in left
            if p.is_file() or not _is_half(p) or p.suffix != ".leases"
        ]

    def is_whole(self, names, day="1"):
        found = self.published(day)
        assert found == {0} or (len(found - {"whole"}) == 1 and found - {"whole"} <= names), found
        assert len(self.model_of()) <= 1


def begin(world):
    world.clear()
    saved = world.folder.with_name("saved")
    if world.has_old and saved.exists():
        shutil.copytree(saved, world.folder, dirs_exist_ok=True)
    elif world.has_old:
        for day in ("1", "2"):
            world.calibrate("old", day)
            assert not world.leavings()
        shutil.copytree(world.folder, saved)


def ends(world, *actors):
    """Let all go on, in turn where they wait for each other."""
    for _ in range(1000):
        more = [actor.go() for actor in actors if not actor.greenlet.dead]
        if not any(more):
            return
    raise AssertionError("runs wait for each other for ever")


def check_next(world, *actors, day="1"):
    """After the next run, all is its own and nothing of the others is left."""
    world.is_whole({"old", *(actor.name for actor in actors)}, day)
    follower = world.actor("next", lambda run: world.calibrate(run, day))
    ends(world, follower)
    assert follower.error is None
    assert world.published(day) == {"next", "whole"}
    assert world.model_of() in (set(), {"next"})
    assert not world.leavings()


SOME = (0, 1, 2, 3, 5, 8, 13, FOREVER)
EVERY = (*range(100), FOREVER)
"""More steps than a run has."""


def sweep(world, first, second, after, *, is_killed=False, looks=False, inner=SOME):
    """Stop one before each of its steps, the other one at some of its own; returns the number of cases.

    With MCSPARK_EVERY_STEP the other one is stopped before each of its steps too.
    """
    inner = EVERY if os.environ.get("MCSPARK_EVERY_STEP") else inner
    cases, more = 0, True
    for i in count():
        if not more:
            return cases
        for j in inner:
            begin(world)
            a, b = world.actor("a", first), world.actor("b", second)
            more = a.go(i)
            if is_killed:
                a.die()
            going = b.go(j)
            after(a, b)
            cases += 1
            if not going:
                break
    return cases

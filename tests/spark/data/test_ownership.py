"""What is replaced is what this program has made, and nothing else; what cannot be renamed is left alone."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from mcspark.data.leases.lease import Lease
from mcspark.data.leases.manifest import write_manifest
from mcspark.data.leases.ownership import MARK
from mcspark.data.publishing.sink import Publication, Target
from mcspark.errors import ConfigurationError, TransientError
from mcspark.runtime.files import mounts
from mcspark.runtime.files.files import Files

PAGE = re.compile("made here")


def contents(folder):
    files = (path for path in sorted(Path(folder).rglob("*")) if path.is_file() and path.suffix != ".crc")
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def write(spark, target, rows=3, run="r1", home=None, **options):
    with ExitStack() as held:
        lease = held.enter_context(Lease(spark, home, run)) if home else None
        publication = held.enter_context(Publication(spark, run, lease))
        publication.stage(target, spark.range(rows), rows=rows, **options)
        publication.publish()


def refused(spark, folder, target, match, **options):
    """The table is refused, early and when it is staged, and nothing in the folder has changed."""
    before = contents(folder)
    with Publication(spark, "early") as publication, pytest.raises(ConfigurationError, match=match):
        publication.claim(target, options.get("kind", "output"))
    with pytest.raises(ConfigurationError, match=match):
        write(spark, target, run="late", **options)
    assert contents(folder) == before
    assert not list(Path(folder).glob(".*staging*"))


def without_mark(folder):
    """As the first versions have written it."""
    (folder / MARK).unlink()
    return folder


def add_notes(out):
    (out / "notes.txt").write_text("mine")


def add_rows(out):
    (out / "part-00000-mine.snappy.parquet").write_bytes((next(out.glob("part-*"))).read_bytes())


def add_a_folder(out):
    (out / "figures").mkdir()
    (out / "figures" / "one.png").write_text("mine")


def add_a_link(out):
    (out / "data").symlink_to(out.parent)


@pytest.mark.parametrize("add", [add_notes, add_rows, add_a_folder, add_a_link])
@pytest.mark.parametrize("is_own", [True, False])
def test_a_folder_with_somebody_s_files_is_refused(spark, tmp_path, add, is_own):
    target, out = Target(str(tmp_path / "out")), tmp_path / "out"
    write(spark, target)
    if not is_own:
        without_mark(out)
    add(out)
    refused(spark, tmp_path, target, "this program has not made as its output, such as .*nothing is replaced")


def test_a_table_of_others_is_refused_though_it_looks_like_ours(spark, tmp_path):
    out = tmp_path / "out"
    spark.range(5).write.parquet(str(out))
    refused(spark, tmp_path, Target(str(out)), f"holds (.) of \\1 files .*put an empty {MARK} there")
    # The manifest of a run that was refused there says nothing of the folder.
    failed = {"job": "score", "status": "error", "configuration": {}, "result": {"error": "no"}}
    write_manifest(spark, str(out), run_id="r0", **failed)
    refused(spark, tmp_path, Target(str(out)), r"holds (.) of \1 files")
    (out / MARK).write_text("")
    write(spark, Target(str(out)), rows=7)
    assert spark.read.parquet(str(out)).count() == 7


def test_a_table_of_another_kind_and_a_file_are_refused(spark, tmp_path):
    write(spark, Target(str(tmp_path / "out")), kind="rejected")
    refused(spark, tmp_path, Target(str(tmp_path / "out")), "has not made as its output")
    (tmp_path / "file").write_text("mine")
    refused(spark, tmp_path, Target(str(tmp_path / "file")), "is a file")


def test_an_output_of_an_earlier_version_is_known_by_its_manifest(spark, tmp_path):
    """Both of its tables: the manifests lie beside the scores."""
    day = Target(str(tmp_path / "out"), partition={"ds": "1"})
    paths = {}
    for kind, target in (("output", day), ("rejected", day.beside("rejected"))):
        write(spark, target, kind=kind)
        without_mark(Path(target.leaf))
        paths[kind] = target.leaf
    for kind, target in (("output", day), ("rejected", day.beside("rejected"))):
        refused(spark, tmp_path, target, "has not made", kind=kind)
    write_manifest(
        spark, day.leaf, run_id="r1", job="score", status="ok", configuration={}, result={"paths": paths}
    )
    for kind, target in (("output", day), ("rejected", day.beside("rejected"))):
        write(spark, target, rows=9, run="r2", home=day.leaf, kind=kind)
        assert spark.read.parquet(target.leaf).count() == 9
        assert json.loads((Path(target.leaf) / MARK).read_text())["run_id"] == "r2"


@pytest.mark.parametrize("name", ["model.json", "weights.bin"])
def test_a_model_takes_the_place_of_a_model_only(spark, tmp_path, name):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / name).write_text('{"mine": 1}')
    before = contents(tmp_path)
    with Publication(spark, "r1") as publication, pytest.raises(ConfigurationError, match="as its model"):
        publication.stage_folder(str(folder), lambda place: Files(spark, place).write_text(f"{place}/m", "1"))
    assert contents(tmp_path) == before


@pytest.mark.parametrize("of_earlier_version", [True, False])
def test_a_whole_table_does_not_replace_partitions_unsaid(spark, tmp_path, of_earlier_version):
    path = str(tmp_path / "out")
    for day in ("1", "2"):
        target = Target(path, partition={"ds": day})
        write(spark, target)
        if of_earlier_version:
            without_mark(Path(target.leaf))
            write_manifest(
                spark, target.leaf, run_id="r1", job="score", status="ok", configuration={},
                result={"paths": {"output": target.leaf}},
            )  # fmt: skip
    words = r"has partitions \(2, such as ds=1\).*output.replace_all: true"
    refused(spark, tmp_path, Target(path), words)
    (tmp_path / "out" / "ds=2" / "mine.csv").write_text("a")
    refused(spark, tmp_path, Target(path, replaces_all=True), "1 of . files .*such as ds=2/mine.csv")
    (tmp_path / "out" / "ds=2" / "mine.csv").unlink()
    write(spark, Target(path, replaces_all=True), rows=5, run="r2")
    assert spark.read.parquet(path).count() == 5
    refused(spark, tmp_path, Target(path, partition={"ds": "1"}), "holds a table without partitions")


@contextmanager
def mounted(point, *options):
    done = subprocess.run(["mount", *options, str(point)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no right to mount here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(point)], check=True)


@pytest.mark.parametrize("how", ["tmpfs", "bind", "within"])
def test_a_mount_point_is_refused_before_anything_is_moved(spark, tmp_path, how):
    """A file system in memory, a folder bound from the same disk, and a mount below the folder."""
    target, out = Target(str(tmp_path / "out")), tmp_path / "out"
    write(spark, target)
    point = out
    if how == "within":
        point = out / "deep"
        point.mkdir()
    source = tmp_path / "source"
    source.mkdir()
    options = ["--bind", str(source)] if how == "bind" else ["-t", "tmpfs", "tmpfs"]
    with mounted(point, *options):
        refused(spark, tmp_path, target, f"{point} is a mount point.*name a folder below the mount")
        assert not list(tmp_path.glob(".*"))
        below = Target(str(point / "table"))
        write(spark, below, rows=4)
        write(spark, below, rows=5, run="r2")
        assert spark.read.parquet(below.path).count() == 5
    assert spark.read.parquet(str(out)).count() == 3


def test_a_folder_on_another_device_than_its_parent_is_refused(spark, tmp_path, monkeypatch):
    """Where nothing may be mounted: what the system says is made up."""
    target = Target(str(tmp_path / "out"))
    write(spark, target)
    (tmp_path / "mountinfo").write_text(
        f"1 2 0:1 / {tmp_path}/out rw - none none rw\n".replace("out", "o\\165t")
    )
    with monkeypatch.context() as patch:
        patch.setattr(mounts, "_TABLE", tmp_path / "mountinfo")
        refused(spark, tmp_path, target, "out is a mount point")
    monkeypatch.setattr("mcspark.data.leases.ownership.is_movable", lambda _: False)
    refused(spark, tmp_path, target, "is a mount point")


def test_a_rename_between_devices_copies_nothing_and_is_no_transient_fault(spark, tmp_path, monkeypatch):
    target = Target(str(tmp_path / "out"))
    write(spark, target)
    before = contents(tmp_path)
    for fault, kind in ((18, ConfigurationError), (5, TransientError)):

        def crossing(self, to, fault=fault):
            raise OSError(fault, os.strerror(fault))

        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", crossing)
            with pytest.raises(kind, match="nothing was published, the old output stands"):
                write(spark, target, run="r2")
        assert contents(tmp_path) == before


def test_a_link_is_followed_and_stays(spark, tmp_path):
    """``current`` points to a folder: the rows change there, beside it nothing is left."""
    real = Target(str(tmp_path / "versions" / "v3"))
    write(spark, real)
    (tmp_path / "current").symlink_to(tmp_path / "versions" / "v3")
    (tmp_path / "way").symlink_to(tmp_path / "versions")
    for rows, path in ((4, "current"), (5, "way/v3")):
        write(spark, Target(str(tmp_path / path)), rows=rows, run="r2")
        assert spark.read.parquet(real.path).count() == rows
    assert (tmp_path / "current").is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["current", "versions", "way"]
    assert [p.name for p in (tmp_path / "versions").iterdir()] == ["v3"]


def publish_texts(spark, folder, run, target=None, page="r.html"):
    with Publication(spark, run) as publication:
        if target:
            publication.stage(target, spark.range(8), rows=8)
        publication.stage_text(str(folder / page), f"made here by {run}", PAGE)
        publication.publish()


@pytest.mark.parametrize("renames", [True, False])
def test_texts_are_published_with_the_tables_or_not_at_all(spark, tmp_path, monkeypatch, renames):
    """On stores that cannot rename too; the failure comes when everything else is in place."""
    out = Target(str(tmp_path / "out"))
    publish_texts(spark, tmp_path, "r1", out)
    before = contents(tmp_path)

    def full(self, state):
        if state == "published":
            raise OSError("the disk said no")

    with monkeypatch.context() as patch:
        patch.setattr(Publication, "_note", full)
        patch.setattr(Publication, "_put_text", texts_as(renames, Publication._put_text))
        with pytest.raises(TransientError, match="the disk said no"):
            publish_texts(spark, tmp_path, "r2", out)
    assert contents(tmp_path) == before
    publish_texts(spark, tmp_path, "r3", out)
    assert (tmp_path / "r.html").read_text() == "made here by r3"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "r.html"]


def texts_as(renames, put_text):
    def put(self, staged, text):
        files = self._files(staged.leaf)
        files.renames = renames
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self, "_files", lambda _: files)
            put_text(self, staged, text)

    return put


def test_a_text_of_somebody_else_a_folder_and_a_sealed_place_are_refused(spark, tmp_path, monkeypatch):
    (tmp_path / "README.md").write_text("# Our project")
    (tmp_path / "bytes.html").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder").mkdir()
    before = contents(tmp_path)
    for page, match in (
        ("README.md", "has not made"), ("bytes.html", "has not made"), ("folder", "is a folder"),
    ):  # fmt: skip
        with pytest.raises(ConfigurationError, match=match):
            publish_texts(spark, tmp_path, "r1", page=page)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot make this folder"):
        publish_texts(spark, tmp_path, "r1", Target(str(tmp_path / "out")), page="file/r.html")
    (tmp_path / "file").unlink()
    assert contents(tmp_path) == before
    with pytest.raises(ConfigurationError, match="folder: cannot be written"):
        Files(spark, str(tmp_path)).write_text(str(tmp_path / "folder"), "x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["README.md", "bytes.html", "folder"]

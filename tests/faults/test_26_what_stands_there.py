"""What a run would write over: somebody's files, all days; and places that cannot be written."""

from __future__ import annotations

import shutil

import pytest

from .conftest import DAY, OLD_DAY, content

DAY_FOLDER = f"ds={DAY}"


def test_somebody_s_folder_is_not_replaced_by_a_model_nor_by_scores(world):
    """Before anything is read: both jobs end at once, and every file is there."""
    mine = world.root / "mine"
    shutil.copytree(world.root / "scored", mine)
    (mine / "notes.txt").write_text("mine")
    before = content(world.root / "mine")
    world.refused("mine: holds 2 of 2 files .* as its model", 2, "calibrate", model={"path": str(mine)})
    output = {"path": str(mine), "partition": None}
    world.refused("mine: holds 2 of 2 files .* as its output", 2, output=output)
    assert content(mine) == before


@pytest.mark.parametrize("page", ["README.html", "folder"])
def test_somebody_s_text_is_not_replaced_by_a_report(world, page):
    """The card of README.html is README.md; a folder gets no hidden companion."""
    (world.root / "README.md").write_text("# Ours")
    (world.root / "folder").mkdir()
    match = "README.md: is a file that" if page == "README.html" else "folder: is a folder"
    for job in ("calibrate", "audit"):
        world.refused(match, 2, job, report={"path": str(world.root / page)})
    assert (world.root / "README.md").read_text() == "# Ours"
    assert not list(world.root.glob(".*"))


def test_all_days_are_replaced_only_where_that_is_said(world, people):
    world.refused(rf"calibrated: has partitions \(2, such as ds={OLD_DAY}\)", 2, output={"partition": None})
    done = world.ran(output={"partition": None, "replace_all": True})
    assert len(world.output(done)) == len(people)
    assert not list((world.out / "calibrated").glob("ds=*"))
    world.refused("holds a table without partitions", 2)


def test_a_manifest_that_cannot_be_written_leaves_the_old_output(world):
    """All that can fail comes before the first folder is replaced."""
    manifests = world.out / "calibrated" / f"_ds-{DAY}_manifests"
    shutil.rmtree(manifests)
    manifests.write_text("in the way")
    world.change("scored", lambda t: t.assign(score=t["score"] / 2))
    world.refused("cannot (make this folder|be written)", 2)


def test_an_output_that_is_a_link_is_followed(world, people):
    """As users have it who let `current` point to a version; the rows change there."""
    version = world.out / "v1"
    (world.out / "calibrated").rename(version)
    (world.out / "calibrated").symlink_to(version)
    world.change("scored", lambda t: t.assign(score=t["score"] / 2))
    done = world.ran()
    assert (world.out / "calibrated").is_symlink()
    assert len(list((version / DAY_FOLDER).glob("part-*"))) == 1
    assert world.output(done)["score"].max() <= 0.5

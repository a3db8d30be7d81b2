"""Folders whose names mean something to a shell, to Hadoop's patterns, or in an address."""

from __future__ import annotations

import shutil

import pytest

from mcspark.config import ScoredTable
from mcspark.data.formats.lake import by_path
from mcspark.data.tables import read_table
from tests.faults.conftest import World, leavings, read

ODD = [
    "a[1]", "a{b}", "a{b,c}", r"a\b", "a*", "a?b", "a#b", "a%20b", "100%", "two words", "é", "a^b", "a`b'c",
]  # fmt: skip


def in_folder(world, name) -> World:
    """The same world below a folder of that name."""
    folder = world.root.parent / name
    folder.mkdir()
    shutil.move(world.root, folder / "world")
    return World(world.spark, folder / "world")


def test_every_table_model_and_report_below_a_folder_of_any_name(world, people):
    odd = in_folder(world, r"a[1]{b,c}\d e#f?g*h 100%20 région")
    shutil.rmtree(odd.root / "model")
    report, dataset = odd.root / "report [1]#.html", {"calibrator": {"max_trees": 3}}
    done = odd.ran("calibrate", report={"path": str(report)}, **dataset)
    assert len(odd.output(done)) == len(people)
    assert report.is_file()
    assert (odd.root / "model" / "model.json").is_file()
    again = odd.ran("score")
    assert odd.output(again).equals(odd.output(done))
    audited = odd.ran("audit", drift={"against": str(odd.root / "model")}, output={"partition": None})
    assert audited.summary["drift"]["score_distance"] == 0
    assert not [path for path in leavings(odd.out) if "staging" in path or "work" in path]


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_table_that_commits_by_itself_below_a_folder_of_any_name(spark, tmp_path, table_format):
    folder = tmp_path / r"a[1]{b}\c #?* 100%20"
    folder.mkdir()
    place = str(folder / f"{table_format}[1]#")
    for day in ("2026-11-25", "2026-11-26", "2026-11-26"):
        table = by_path(spark, table_format, place, "run")  # of a run of its own
        table.replace(spark.range(3).selectExpr("id as k", f"'{day}' as ds"), {"ds": day})
    source = ScoredTable(path=place, format=table_format, key=["k"], partition={"ds": "2026-11-26"})
    assert sorted(tuple(row) for row in read_table(spark, source).select("k").collect()) == [(0,), (1,), (2,)]


@pytest.mark.parametrize("name", ODD)
def test_the_folder_that_is_named_is_read_and_no_other(world, people, name):
    for decoy in ("a1", "ab", "ac", "a b", "axb"):
        world.write(decoy, people.assign(score=2.0)[:1])
    world.write(name, people)
    source = ScoredTable(path=str(world.root / name), key=["house", "person"])
    assert read_table(world.spark, source).count() == len(people)
    (world.root / name / "part-0.parquet").unlink()
    (world.root / name / "part-0.csv").write_text("house,person,score\n1,1,0.5\n")
    source = source.model_copy(update={"format": "csv"})
    assert [tuple(row) for row in read_table(world.spark, source).collect()] == [("1", "1", "0.5")]


def test_a_pattern_in_the_place_of_a_path_is_refused(world, people):
    world.write("scored1", people)
    world.refused(r"scored\[1\]: no such table", scored={"path": str(world.root / "scored[1]")})
    world.refused(r"sc\*: no such table", scored={"path": str(world.root / "sc*")})


def test_the_table_that_is_replaced_is_the_one_that_is_named(world, people):
    for name in ("out[1]", "out1"):
        (world.root / name).mkdir()
    other = world.ran(output={"path": str(world.root / "out1" / "calibrated")})
    before = read(other.summary["paths"]["output"])
    world.ran(output={"path": str(world.root / "out[1]" / "calibrated")})
    assert read(other.summary["paths"]["output"]).equals(before)

"""Folders a run and a pointer, on a store that cannot rename: here a local disk that says it cannot."""

from __future__ import annotations

import json

import pytest

from mcspark.config import Output, ScoredTable
from mcspark.data.formats.pointer import Pointer
from mcspark.data.publishing.sink import Publication, Target
from mcspark.data.publishing.target import located
from mcspark.data.tables import read_table
from mcspark.errors import ContractError, TransientError
from mcspark.runtime.files.files import Files

DAYS = ("2026-11-25", "2026-11-26")


@pytest.fixture(autouse=True)
def no_renames(monkeypatch):
    init = Files.__init__

    def without(self, *arguments):
        init(self, *arguments)
        self.renames = False

    def never(self, source, target):
        raise AssertionError(f"{source} was renamed")

    monkeypatch.setattr(Files, "__init__", without)
    monkeypatch.setattr(Files, "move", never)


def write(spark, target, n, run):
    with Publication(spark, run) as publication:
        place = publication.stage(target, spark.range(n).withColumnRenamed("id", "k"), rows=n)
        publication.publish()
    return place


def rows(spark, target, partition=None):
    return read_table(spark, ScoredTable(path=target.path, key=["k"], partition=partition)).count()


def test_readers_follow_the_pointer_and_the_run_before_stays(spark, tmp_path):
    target = Target(str(tmp_path / "out"))
    for i, run in enumerate(("r1", "r2", "r3"), start=1):
        assert write(spark, target, i, run) == f"file:{target.path}/_runs/{run}"
        assert rows(spark, target) == i
    assert sorted(p.name for p in (tmp_path / "out" / "_runs").iterdir()) == ["r2", "r3"]
    assert spark.read.parquet(f"{target.path}/_runs/r2").count() == 2


def test_partitions_have_pointers_of_their_own(spark, tmp_path):
    old, new = (Target(str(tmp_path / "out"), partition={"ds": day}) for day in DAYS)
    write(spark, old, 3, "r1")
    write(spark, new, 4, "r2")
    write(spark, new, 5, "r3")
    assert rows(spark, old) == 8
    assert rows(spark, old, {"ds": DAYS[0]}) == 3
    frame = read_table(spark, ScoredTable(path=new.path, key=["k"], partition={"ds": DAYS[1]}))
    assert frame.select("ds").distinct().collect()[0][0] == DAYS[1]
    assert rows(spark, old, {"ds": "2026-01-01"}) == 0


def test_what_is_staged_is_not_read_and_a_failure_points_back(spark, tmp_path, monkeypatch):
    first, second = Target(str(tmp_path / "out")), Target(str(tmp_path / "out_rejected"))
    for target in (first, second):
        write(spark, target, 10, "r1")
    put, calls = Pointer.set, []

    def failing(self):
        calls.append(self)
        put(self)
        if len(calls) == 2:
            raise OSError("the store said no")

    monkeypatch.setattr(Pointer, "set", failing)
    with pytest.raises(TransientError, match="the store said no"), Publication(spark, "r2") as publication:
        for target in (first, second):
            publication.stage(target, spark.range(3).withColumnRenamed("id", "k"), rows=3)
            assert rows(spark, target) == 10
        publication.publish()
    assert [rows(spark, target) for target in (first, second)] == [10, 10]
    assert [p.name for p in (tmp_path / "out" / "_runs").iterdir()] == ["r1"]


def test_a_catalog_points_to_the_run(spark, tmp_path, request):
    spark.sql(f"CREATE DATABASE store LOCATION '{tmp_path}/store'")
    request.addfinalizer(lambda: spark.sql("DROP DATABASE store CASCADE"))
    for n, run in ((2, "r1"), (4, "r2")):
        for day in DAYS:
            target = located(spark, Output(table="store.out", partition={"ds": day}))
            assert write(spark, target, n, f"{run}-{day}") == "store.out"
    assert spark.table("store.out").groupBy("ds").count().orderBy("ds").collect() == [
        (day, 4) for day in DAYS
    ]
    whole = located(spark, Output(table="store.whole"))
    for n, run in ((2, "r1"), (4, "r2")):
        write(spark, whole, n, run)
        assert located(spark, Output(table="store.whole")).path.endswith("/store/whole")
        assert spark.table("store.whole").count() == n


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"run_id": "../other"}), "{" * 5000])
def test_a_pointer_that_cannot_be_read_is_refused(spark, tmp_path, text):
    target = Target(str(tmp_path / "out"))
    write(spark, target, 1, "r1")
    (tmp_path / "out" / "_current.json").write_text(text)
    with pytest.raises(ContractError, match="no readable pointer"):
        rows(spark, target)

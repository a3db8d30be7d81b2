"""Tables that commit by themselves: one version or the other, and never a partition too many."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import functions as F

from mcspark.config import Output
from mcspark.data.formats.lake import LakeTable
from mcspark.data.publishing import commits
from mcspark.data.publishing.sink import Publication, Target
from mcspark.data.publishing.target import located
from mcspark.errors import ConfigurationError, ContractError, OutputHeldError, TransientError

DAYS = ("2026-11-25", "2026-11-26")
LAKES = ("delta", "iceberg")


def write(spark, target, df, rows, run="r1"):
    with Publication(spark, run) as publication:
        publication.stage(target, df, rows=rows)
        publication.publish()


def numbers(spark, n, start=0):
    return spark.range(start, start + n).withColumnRenamed("id", "a.b")


def found(spark, target):
    """Sorted rows, as a reader without this package gets them."""
    frame = spark.table(target.table) if target.table else spark.read.format(target.format).load(target.path)
    return sorted(tuple(row) for row in frame.collect())


def versions(spark, target):
    if target.format == "delta":
        return spark.sql(f"DESCRIBE HISTORY {target.lake_table(spark, 'x').name}").count()
    return spark.table(f"{target.lake_table(spark, 'x').name}.snapshots").count()


@pytest.fixture(params=[*LAKES, *(f"{name} of a catalog" for name in LAKES)])
def target(request, spark, tmp_path):
    """By path, and by name: Delta in the session's own catalog, Iceberg in a Hadoop catalog."""
    provider, _, by_name = request.param.partition(" ")
    if not by_name:
        return Target(str(tmp_path / "out"), provider)
    if provider == "iceberg":
        for key, value in {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop"}.items():
            spark.conf.set(f"spark.sql.catalog.lake{key}", value)
        spark.conf.set("spark.sql.catalog.lake.warehouse", str(tmp_path))
        spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
        request.addfinalizer(lambda: spark.sql("DROP TABLE IF EXISTS lake.db.out PURGE"))
        return located(spark, Output(table="lake.db.out", format="iceberg"))
    spark.sql(f"CREATE DATABASE db LOCATION '{tmp_path}/db'")
    request.addfinalizer(lambda: spark.sql("DROP DATABASE db CASCADE"))
    return located(spark, Output(table="db.out", format="delta"))


def test_the_whole_table_is_replaced_even_by_other_columns(spark, target):
    write(spark, target, numbers(spark, 10), 10)
    write(spark, target, numbers(spark, 3, start=100), 3, run="r2")
    assert found(spark, target) == [(100,), (101,), (102,)]
    write(spark, target, numbers(spark, 1).withColumn("more", F.lit("x")), 1, run="r3")
    assert found(spark, target) == [(0, "x")]
    write(spark, target, numbers(spark, 0), 0, run="r4")
    assert found(spark, target) == []


def test_one_partition_is_replaced_in_one_commit(spark, target):
    old, new = (target.with_partition({"ds": day}) for day in DAYS)
    write(spark, old, numbers(spark, 3), 3)
    write(spark, new, numbers(spark, 4), 4)
    files = {f for f in spark.table(target.lake_table(spark, "x").name).inputFiles() if DAYS[0] in f}
    before = versions(spark, target)
    for run in ("r2", "r3"):
        write(spark, new, numbers(spark, 2, start=7), 2, run=run)
        assert found(spark, target) == [*((i, DAYS[0]) for i in range(3)), (7, DAYS[1]), (8, DAYS[1])]
    assert versions(spark, target) == before + 2
    assert files <= set(spark.table(target.lake_table(spark, "x").name).inputFiles())
    write(spark, new, numbers(spark, 0), 0, run="r4")
    assert found(spark, target) == [(i, DAYS[0]) for i in range(3)]


def test_columns_that_come_and_go_between_partitions(spark, target):
    old, new = (target.with_partition({"ds": day}) for day in DAYS)
    write(spark, old, numbers(spark, 1).withColumn("label", F.lit(0.5)), 1)
    write(spark, new, numbers(spark, 1).withColumn("more", F.lit(2)), 1)
    table = spark.table(target.lake_table(spark, "x").name)
    rows = sorted((r["ds"], r["label"], r["more"]) for r in table.collect())
    assert rows == [(DAYS[0], 0.5, None), (DAYS[1], None, 2)]


def test_a_column_of_another_type_is_refused(spark, target):
    day = target.with_partition({"ds": DAYS[0]})
    write(spark, day, numbers(spark, 1), 1)
    with pytest.raises(ContractError, match="cannot take these rows"):
        write(spark, day, spark.createDataFrame([("x",)], "`a.b` string"), 1, run="r2")
    with pytest.raises(ContractError, match=r"is partitioned by \['ds'\], the output by \['st'\]"):
        write(spark, target.with_partition({"st": "01"}), numbers(spark, 1), 1, run="r2")
    assert found(spark, target) == [(0, DAYS[0])]


@pytest.mark.parametrize(("partition", "first_run"), [(None, True), ({"ds": DAYS[1]}, False)])
def test_all_tables_are_published_or_none(spark, target, monkeypatch, tmp_path, partition, first_run):
    output = target.with_partition(partition) if partition else target
    others = [output.beside("rejected"), Target(str(tmp_path / "out_folder"))]
    neighbour = target.with_partition({"ds": DAYS[0]}) if partition else None
    if neighbour:
        write(spark, neighbour, numbers(spark, 2), 2, run="r0")
    if not first_run:
        for place in (output, *others):
            write(spark, place, numbers(spark, 10), 10, run="r1")
    replace, calls = LakeTable.replace, []

    def failing(self, df, partition):
        calls.append(self.shown)
        if len(calls) == 2:
            raise TransientError("the catalog said no")
        replace(self, df, partition)

    monkeypatch.setattr(LakeTable, "replace", failing)
    with pytest.raises(TransientError, match="the catalog said no"), Publication(spark, "r2") as publication:
        for place in (output, *others):
            publication.stage(place, numbers(spark, 3), rows=3)
        publication.publish()
    assert calls[:2] == [others[0].place, output.place]
    if first_run:
        assert not any(place.lake_table(spark, "x").exists() for place in (output, others[0]))
        assert not (tmp_path / "out_folder").exists()
    else:
        left = [(i, DAYS[1]) for i in range(10)]
        assert found(spark, output) == [(0, DAYS[0]), *left[:1], (1, DAYS[0]), *left[1:]]
        assert found(spark, others[0]) == left
        assert spark.read.parquet(others[1].path).count() == 10


def test_a_wrong_count_in_the_new_version_is_taken_back(spark, target, monkeypatch):
    write(spark, target, numbers(spark, 10), 10)
    replace, calls = LakeTable.replace, []

    def lossy(self, df, partition):
        calls.append(self.shown)
        replace(self, df.limit(2) if len(calls) == 1 else df, partition)

    monkeypatch.setattr(LakeTable, "replace", lossy)
    with pytest.raises(TransientError, match="2 rows are in the new version where 3 were expected"):
        write(spark, target, numbers(spark, 3, start=50), 3, run="r2")
    assert found(spark, target) == [(i,) for i in range(10)]


def test_a_late_delta_run_does_not_undo_a_later_one(spark, tmp_path):
    """A run that lost its lease commits at last; the run that took over has been there."""
    target = Target(str(tmp_path / "out"), "delta", {"ds": DAYS[0]})
    write(spark, target, numbers(spark, 1), 1)
    late = target.lake_table(spark, "late")
    write(spark, target, numbers(spark, 5), 5, run="r2")
    with pytest.raises(OutputHeldError, match="a run that started later has written there"):
        late.replace(numbers(spark, 9).withColumn("ds", F.lit(DAYS[0])), target.partition)
    assert len(found(spark, target)) == 5


def test_nothing_is_left_beside_the_table(spark, tmp_path):
    for provider in LAKES:
        write(spark, Target(str(tmp_path / provider), provider), numbers(spark, 1), 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == list(LAKES)


def test_a_parquet_table_of_the_catalog(spark, tmp_path, request):
    spark.sql(f"CREATE DATABASE shelf LOCATION '{tmp_path}/shelf'")
    request.addfinalizer(lambda: spark.sql("DROP DATABASE shelf CASCADE"))
    old, new = (located(spark, Output(table="shelf.out", partition={"ds": day})) for day in DAYS)
    assert (old.format, old.place) == ("parquet", "shelf.out")
    write(spark, old, numbers(spark, 3), 3)
    write(spark, new, numbers(spark, 4), 4)
    write(spark, new, numbers(spark, 2, start=7), 2, run="r2")
    assert found(spark, old) == [*((i, DAYS[0]) for i in range(3)), (7, DAYS[1]), (8, DAYS[1])]
    assert (tmp_path / "shelf" / "out" / f"ds={DAYS[1]}" / "_SUCCESS").exists()
    with pytest.raises(ContractError, match=r"has no column a\.b string"):
        write(spark, new, spark.createDataFrame([("x",)], "`a.b` string"), 1, run="r3")
    assert len(found(spark, old)) == 5


def test_names_that_cannot_be_written(spark, tmp_path, request):
    with pytest.raises(ConfigurationError, match="no schema nowhere to write to"):
        located(spark, Output(table="nowhere.out"))
    spark.sql(f"CREATE TABLE texts (a string) USING csv LOCATION '{tmp_path}/texts'")
    request.addfinalizer(lambda: spark.sql("DROP TABLE texts"))
    with pytest.raises(ConfigurationError, match="is of format 'csv'"):
        located(spark, Output(table="texts"))


def test_a_table_without_anything_to_do_has_no_commit(spark, tmp_path):
    assert commits.commit_of(spark, Target(str(tmp_path / "t")), spark.range(1).schema, 1, "r") is None


def test_a_table_of_somebody_else_is_not_replaced(spark, target):
    """Nor are all partitions, unless that is said."""
    write(spark, target, numbers(spark, 3), 3)
    scores = numbers(spark, 2).withColumn("calibrated_score", F.lit(0.5))
    with pytest.raises(ConfigurationError, match="without the column calibrated_score"):
        write(spark, target, scores, 2, run="r2")
    assert found(spark, target) == [(0,), (1,), (2,)]


def test_all_partitions_are_replaced_only_where_that_is_said(spark, target):
    write(spark, target.with_partition({"ds": DAYS[0]}), numbers(spark, 3), 3)
    with pytest.raises(ConfigurationError, match=r"has partitions .*output\.replace_all: true"):
        write(spark, target, numbers(spark, 2), 2, run="r2")
    assert len(found(spark, target)) == 3
    write(spark, replace(target, replaces_all=True), numbers(spark, 2), 2, run="r3")
    assert found(spark, target) == [(0,), (1,)]

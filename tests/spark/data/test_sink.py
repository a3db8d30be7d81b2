"""The one writer: the new table, whole, or the old one, untouched."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from mcspark.data.publishing import writers
from mcspark.data.publishing.sink import Publication, Target
from mcspark.errors import ConfigurationError, TransientError
from mcspark.runtime.files.files import Files


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder, hidden ones too, by digest."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def write(spark, target, df, rows, run="r1"):
    with Publication(spark, run) as publication:
        publication.stage(target, df, rows=rows)
        publication.publish()


def numbers(spark, n, start=0):
    return spark.range(start, start + n).withColumnRenamed("id", "a.b")


def test_whole_table_is_replaced(spark, tmp_path):
    target = Target(str(tmp_path / "new folder" / "out"))
    write(spark, target, numbers(spark, 10), 10)
    write(spark, target, numbers(spark, 3, start=100), 3, run="r2")
    assert sorted(row[0] for row in spark.read.parquet(target.path).collect()) == [100, 101, 102]
    assert (tmp_path / "new folder" / "out" / "_SUCCESS").exists()
    assert [path.name for path in (tmp_path / "new folder").iterdir()] == ["out"]


def test_one_partition_is_replaced_and_its_neighbours_are_untouched(spark, tmp_path):
    path = tmp_path / "out"
    days = {day: Target(str(path), partition={"ds": day}) for day in ("2026-11-25", "2026-11-26")}
    for day, target in days.items():
        write(spark, target, numbers(spark, 4).withColumn("ds", F.lit(day)), 4)
    before = contents(path / "ds=2026-11-25")
    write(spark, days["2026-11-26"], numbers(spark, 2), 2, run="r2")
    assert contents(path / "ds=2026-11-25") == before
    count = {row["ds"]: row["count"] for row in spark.read.parquet(str(path)).groupBy("ds").count().collect()}
    assert count == {"2026-11-25": 4, "2026-11-26": 2}
    assert sorted(p.name for p in path.iterdir()) == ["ds=2026-11-25", "ds=2026-11-26"]
    assert (path / "ds=2026-11-26" / "_SUCCESS").exists()


def test_nested_partition(spark, tmp_path):
    target = Target(str(tmp_path / "out"), partition={"st": "01", "ds": "2026-11-26"})
    write(spark, target, numbers(spark, 2), 2)
    assert [
        tuple(row) for row in spark.read.parquet(target.path).select("st", "ds").distinct().collect()
    ] == [("01", "2026-11-26")]


def test_an_empty_table_keeps_its_types_and_replaces_the_old_rows(spark, tmp_path):
    target = Target(str(tmp_path / "out"))
    write(spark, target, numbers(spark, 10), 10)
    write(spark, target, numbers(spark, 10).where("`a.b` < 0"), 0, run="r2")
    assert spark.read.parquet(target.path).dtypes == [("a.b", "bigint")]
    assert spark.read.parquet(target.path).count() == 0


def failing(spark, rows=1000):
    return spark.range(rows).select(
        F.expr("if(id = 999, raise_error('on purpose'), id)").cast("bigint").alias("a")
    )


def test_a_write_that_fails_leaves_the_old_table_byte_for_byte(spark, tmp_path):
    target = Target(str(tmp_path / "out"))
    write(spark, target, numbers(spark, 10), 10)
    before = contents(tmp_path)
    with pytest.raises(Exception, match="on purpose"):
        write(spark, target, failing(spark), 1000, run="r2")
    assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_wrong_count_leaves_the_old_table_byte_for_byte(spark, tmp_path):
    target = Target(str(tmp_path / "out"))
    write(spark, target, numbers(spark, 10), 10)
    before = contents(tmp_path)
    with pytest.raises(TransientError, match="9 rows were written where 10 were expected"):
        write(spark, target, numbers(spark, 9), 10, run="r2")
    assert contents(tmp_path) == before


def test_what_is_not_published_is_not_seen(spark, tmp_path):
    target = Target(str(tmp_path / "out"))
    with Publication(spark, "r1") as publication:
        publication.stage(target, numbers(spark, 5), rows=5)
        assert [path.name for path in tmp_path.iterdir()] == [".out.staging-r1"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failing_move", range(1, 5))
def test_two_tables_are_published_together_or_not_at_all(spark, tmp_path, monkeypatch, failing_move):
    first, second = Target(str(tmp_path / "out")), Target(str(tmp_path / "out")).beside("rejected")
    assert second.path == f"{tmp_path}/out_rejected"
    for target in (first, second):
        write(spark, target, numbers(spark, 10), 10)
    before = contents(tmp_path)
    moves = []
    move = Files.move

    def failing_once(self, source, to):
        moves.append(source)
        if len(moves) == failing_move:
            raise OSError("the disk said no")
        move(self, source, to)

    monkeypatch.setattr(Files, "move", failing_once)
    with (
        pytest.raises(TransientError, match=r"the old output stands: the disk said no"),
        Publication(spark, "r2") as publication,
    ):
        publication.stage(first, numbers(spark, 3), rows=3)
        publication.stage(second, numbers(spark, 4), rows=4)
        publication.publish()
    assert contents(tmp_path) == before
    monkeypatch.undo()
    with Publication(spark, "r3") as publication:
        publication.stage(first, numbers(spark, 3), rows=3)
        publication.stage(second, numbers(spark, 4), rows=4)
        publication.publish()
    assert [spark.read.parquet(target.path).count() for target in (first, second)] == [3, 4]


def test_what_a_dead_run_left_is_mended(spark, tmp_path):
    target = Target(str(tmp_path / "out"))
    write(spark, target, numbers(spark, 10), 10)
    neighbour = tmp_path / ".other.staging-dead"
    (tmp_path / ".out.staging-dead").mkdir()
    neighbour.mkdir()
    (tmp_path / "out").rename(tmp_path / ".out.old-dead")  # it died between the two renames
    with pytest.raises(TransientError):
        write(spark, target, numbers(spark, 9), 10, run="r2")
    assert spark.read.parquet(target.path).count() == 10
    (tmp_path / ".out.old-dead2").mkdir()  # it died before it removed the old table
    write(spark, target, numbers(spark, 2), 2, run="r3")
    assert spark.read.parquet(target.path).count() == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [neighbour.name, "out"]


def test_a_folder_that_cannot_be_written_and_a_format_without_writer(spark, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot make this folder"):
        write(spark, Target(str(tmp_path / "file" / "out")), numbers(spark, 1), 1)
    with pytest.raises(ConfigurationError, match="'orc' cannot be written; choose one of"):
        write(spark, Target(str(tmp_path / "out"), "orc"), numbers(spark, 1), 1)


def test_number_and_size_of_files_are_bounded(spark, tmp_path, monkeypatch):
    many = numbers(spark, 3000).repartition(40)
    small = Target(str(tmp_path / "small"))
    write(spark, small, many, 3000)
    assert len(list(Path(small.path).glob("*.parquet"))) == 1
    monkeypatch.setattr(writers, "ROWS_A_FILE", 700)
    monkeypatch.setattr(writers, "_ROWS_A_TASK", 100)
    large = Target(str(tmp_path / "large"))
    write(spark, large, many, 3000)
    counts = [spark.read.parquet(str(p)).count() for p in Path(large.path).glob("*.parquet")]
    assert max(counts) <= 700
    assert 5 <= len(counts) <= 10
    lump = Target(str(tmp_path / "lump"))
    write(spark, lump, numbers(spark, 3000).repartition(1), 3000)
    assert len(list(Path(lump.path).glob("*.parquet"))) == 5


@pytest.mark.parametrize(
    "rows", [[("x", 2**53 + 1, None, ["a", None], True), (None, None, 0.1, None, None)], []]
)
def test_rows_of_the_driver_are_written_without_a_job(spark, tmp_path, rows):
    schema = spark.createDataFrame([], "s string, n long, `x.y` double, a array<string>, b boolean").schema
    place = Target(str(tmp_path / "out"), partition={"run_id": "r1"})
    context = spark.sparkContext
    with Publication(spark, "r1") as publication:
        context.setJobGroup(str(tmp_path), "")
        publication.stage_rows(place, rows, schema, kind="metrics")
        publication.publish()
    assert not context.statusTracker().getJobIdsForGroup(str(tmp_path))
    found = spark.read.parquet(str(tmp_path / "out"))
    assert found.schema == StructType([*schema, StructField("run_id", StringType())])
    assert [tuple(row) for row in found.drop("run_id").collect()] == rows


def test_marker_is_there_even_if_spark_was_told_not_to_write_it(spark, tmp_path):
    conf = spark._jsc.hadoopConfiguration()
    conf.set("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    try:
        write(spark, Target(str(tmp_path / "out")), numbers(spark, 1), 1)
    finally:
        conf.unset("mapreduce.fileoutputcommitter.marksuccessfuljobs")
    assert (tmp_path / "out" / "_SUCCESS").exists()


def test_errors_of_spark_stay_what_they_are(spark, tmp_path):
    with pytest.raises(PySparkException):
        write(spark, Target(str(tmp_path / "out")), spark.range(1).select(F.lit(None).alias("void")), 1)

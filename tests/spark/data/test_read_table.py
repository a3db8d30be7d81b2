"""The one reader: codes stay text, drift and unreadable tables are refused before a row is read."""

from __future__ import annotations

import pytest

from mcspark.config import AttributeTable, ScoredTable
from mcspark.data.formats import drift
from mcspark.data.tables import read_table
from mcspark.errors import ConfigurationError, ContractError


def source(path, **more):
    return AttributeTable(path=str(path), key=["k"], **more)


def test_partition_folders_and_values_stay_text(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.createDataFrame([(1, "01"), (2, "02"), (3, "1")], "k int, st string").write.partitionBy(
        "st"
    ).parquet(path)
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "true")
    try:
        df = read_table(spark, ScoredTable(path=path, key=["k"], partition={"st": "01"}))
        assert spark.conf.get("spark.sql.sources.partitionColumnTypeInference.enabled") == "true"
    finally:
        spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    assert df.schema["st"].dataType.simpleString() == "string"
    assert [tuple(row) for row in df.select("k", "st").collect()] == [(1, "01")]
    scan = df._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [isnotnull(st" in scan


def test_partition_that_is_not_there_is_empty_and_a_missing_column_is_refused(spark, ansi, tmp_path):
    path = str(tmp_path / "t")
    spark.createDataFrame([(1, "a")], "k int, ds string").write.partitionBy("ds").parquet(path)
    assert read_table(spark, ScoredTable(path=path, key=["k"], partition={"ds": "2026-01-01"})).count() == 0
    spark.createDataFrame([(1, 5)], "k int, n int").write.parquet(str(tmp_path / "n"))
    numbers = ScoredTable(path=str(tmp_path / "n"), key=["k"], partition={"n": "none"})
    assert read_table(spark, numbers).count() == 0
    with pytest.raises(ContractError, match=r"no column 'dt'.*ds"):
        read_table(spark, ScoredTable(path=path, key=["k"], partition={"dt": "a"}))


def test_csv_codes_keep_their_zeros(spark, tmp_path):
    (tmp_path / "a.csv").write_text('k,puma,"a.b"\n001,0100,x\n"0""2",0200,\n', encoding="utf-8")
    df = read_table(spark, source(tmp_path, format="csv"))
    assert sorted(tuple(row) for row in df.collect()) == [('0"2', "0200", None), ("001", "0100", "x")]
    assert set(df.dtypes) == {("k", "string"), ("puma", "string"), ("a.b", "string")}


def test_csv_header_with_byte_order_mark(spark, tmp_path):
    (tmp_path / "a.csv").write_text("\ufeffk,v\n01,2\n", encoding="utf-8")
    df = read_table(spark, source(tmp_path, format="csv"))
    assert df.columns == ["k", "v"]
    assert df.collect()[0]["k"] == "01"


@pytest.mark.parametrize("second", ["k,w\n2,3\n", "v,k\n3,2\n", "k\n2\n"])
def test_csv_files_with_other_headers_are_refused(spark, tmp_path, second):
    (tmp_path / "a.csv").write_text("k,v\n1,2\n")
    (tmp_path / "b.csv").write_text(second)
    with pytest.raises(ContractError, match=r"different headers: a\.csv against b\.csv"):
        read_table(spark, source(tmp_path, format="csv"))


def test_csv_names_that_differ_in_case_are_refused(spark, tmp_path):
    (tmp_path / "a.csv").write_text("k,v,V\n1,2,3\n")
    with pytest.raises(ContractError, match=r"differ only in case: \['V', 'v'\]"):
        read_table(spark, source(tmp_path, format="csv"))


@pytest.mark.parametrize("table_format", ["parquet", "csv"])
def test_missing_and_empty_folders_are_refused(spark, tmp_path, table_format):
    with pytest.raises(ContractError, match="no such table"):
        read_table(spark, source(tmp_path / "nowhere", format=table_format))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ContractError, match="no data files"):
        read_table(spark, source(tmp_path / "empty", format=table_format))


def test_file_that_is_no_parquet_is_refused_by_name(spark, tmp_path):
    spark.range(3).withColumnRenamed("id", "k").coalesce(1).write.parquet(str(tmp_path / "t"))
    (tmp_path / "t" / "zz.parquet").write_text("not parquet, whatever it says; long enough for a footer")
    with pytest.raises(ContractError, match=r"zz\.parquet is not a readable Parquet file"):
        read_table(spark, source(tmp_path / "t"))


@pytest.mark.parametrize(
    ("second", "shown"),
    [
        ("k", "- v bigint"),
        ("k, cast(v as string) v", "~ v bigint -> string"),
        ("k, v, 1 as w", "+ w int"),
        ("k, v as V2", "- v bigint"),
    ],
)
def test_parquet_files_that_differ_are_refused_with_the_difference(spark, tmp_path, second, shown):
    path = str(tmp_path / "t")
    frame = spark.range(4).selectExpr("id as k", "id as v")
    frame.coalesce(1).write.parquet(f"{path}/part=1")
    frame.selectExpr(*second.split(", ")).coalesce(1).write.parquet(f"{path}/part=2")
    with pytest.raises(ContractError) as refused:
        read_table(spark, source(path))
    assert shown in str(refused.value)
    assert "part=1/" in str(refused.value)
    assert "part=2/" in str(refused.value)
    # A partition alone is of one mind, and drift in columns that nobody uses is nobody's concern.
    alone = read_table(spark, ScoredTable(path=path, key=["k"], partition={"part": "2"}))
    assert alone.drop("part").schema == spark.read.parquet(f"{path}/part=2").schema
    assert len(alone.collect()) == 4
    assert read_table(spark, source(path), columns=["k"]).count() == 8


def test_nullability_and_column_order_are_no_drift(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.range(4).selectExpr("id as k", "array(id) v").coalesce(1).write.parquet(f"{path}/part=1")
    nullable = spark.range(4).selectExpr("array(nullif(id, 2)) v", "nullif(id, 3) as k")
    nullable.coalesce(1).write.parquet(f"{path}/part=2")
    assert read_table(spark, source(path)).count() == 8


def test_of_many_files_an_even_part_is_compared(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(drift, "MAX_FOOTERS", 3)
    path = str(tmp_path / "t")
    for i in range(8):
        spark.range(2).selectExpr("id as k", "1 as v").coalesce(1).write.parquet(f"{path}/part={i}")
    assert read_table(spark, source(path)).count() == 16
    spark.range(2).selectExpr("id as k").coalesce(1).write.parquet(f"{path}/part=9")
    with pytest.raises(ContractError, match="- v int"):
        read_table(spark, source(path))


def test_columns_that_differ_in_case_are_refused(spark, tmp_path):
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        spark.range(2).selectExpr("id as k", "id as v", "id as V").write.parquet(str(tmp_path / "t"))
        with pytest.raises(ContractError, match=r"differ only in case: \['V', 'v'\]"):
            read_table(spark, source(tmp_path / "t"))
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")
    with pytest.raises(ContractError, match=r"differ only in case: \['V', 'v'\]"):
        read_table(spark, source(tmp_path / "t"))


def test_named_tables_and_formats_without_a_reader(spark, tmp_path):
    spark.range(3).withColumnRenamed("id", "k").createOrReplaceTempView("some_table")
    try:
        assert read_table(spark, AttributeTable(table="some_table", key=["k"])).count() == 3
    finally:
        spark.catalog.dropTempView("some_table")
    with pytest.raises(ContractError, match=r"nowhere\.at_all: cannot be read"):
        read_table(spark, AttributeTable(table="nowhere.at_all", key=["k"]))
    with pytest.raises(ConfigurationError, match="no reader for this format"):
        read_table(spark, source(tmp_path).model_copy(update={"format": "hudi"}))


def test_awkward_folder_names(spark, tmp_path):
    path = str(tmp_path / "a b%20ü")
    spark.range(3).withColumnRenamed("id", "k").write.parquet(path)
    assert read_table(spark, source(path)).count() == 3
    (tmp_path / "c d%20").mkdir()
    (tmp_path / "c d%20" / "x y.csv").write_text("k\n01\n")
    assert read_table(spark, source(tmp_path / "c d%20", format="csv")).count() == 1

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mcspark.acs.publish import _own, publish
from mcspark.errors import ConfigurationError


def test_a_table_that_fails_midway_leaves_all_old_tables(spark: SparkSession, tmp_path: Path) -> None:
    publish(spark, str(tmp_path), {"a": spark.range(3), "b": spark.range(4)})
    failing = spark.range(10).selectExpr("IF(id = 9, raise_error('broken'), id) AS id")
    with pytest.raises(Exception, match="broken"):
        publish(spark, str(tmp_path), {"a": spark.range(100), "b": failing})
    assert spark.read.parquet(str(tmp_path / "a")).count() == 3
    assert spark.read.parquet(str(tmp_path / "b")).count() == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_rename_that_fails_puts_the_old_tables_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(spark, str(tmp_path), {"a": spark.range(3), "b": spark.range(4)})
    from mcspark.acs import publish as module

    move = module.Files.move

    def fails_once_at_b(self: object, source: str, target: str) -> None:
        if source.endswith("new/b"):
            raise OSError("no")
        move(self, source, target)

    monkeypatch.setattr(module.Files, "move", fails_once_at_b)
    with pytest.raises(OSError, match="no"):
        publish(spark, str(tmp_path), {"a": spark.range(100), "b": spark.range(100)})
    assert spark.read.parquet(str(tmp_path / "a")).count() == 3
    assert spark.read.parquet(str(tmp_path / "b")).count() == 4


def test_a_table_may_be_replaced_by_one_made_from_it(spark: SparkSession, tmp_path: Path) -> None:
    paths = publish(spark, f"{tmp_path}/", {"a": spark.range(3)})
    publish(spark, str(tmp_path), {"a": spark.read.parquet(paths["a"]).where("id > 0")})
    assert {row["id"] for row in spark.read.parquet(paths["a"]).collect()} == {1, 2}


def test_an_output_that_cannot_be_made_is_a_usage_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot create"):
        publish(spark, str(tmp_path / "file" / "out"), {"a": spark.range(3)})


def test_what_a_killed_process_left_is_mended(spark: SparkSession, tmp_path: Path) -> None:
    """It died between its renames: the old table comes back, and what it had staged goes."""
    publish(spark, str(tmp_path), {"a": spark.range(3), "b": spark.range(4)})
    ended = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
    own = _own().rsplit("-", 3)[0]
    dead, alive = tmp_path / f"{own}-{ended}-0-0a1b", tmp_path / f"{_own()}0a1b"
    for folder in (dead / "old", dead / "new", alive / "new"):
        folder.mkdir(parents=True)
    (tmp_path / "a").rename(dead / "old" / "a")
    failing = spark.range(10).selectExpr("IF(id = 9, raise_error('broken'), id) AS id")
    with pytest.raises(Exception, match="broken"):
        publish(spark, str(tmp_path), {"a": failing})
    assert spark.read.parquet(str(tmp_path / "a")).count() == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([alive.name, "a", "b"])

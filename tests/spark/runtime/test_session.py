"""What a session of mcspark promises, and what it leaves to the operator."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mcspark.engine.classic.class_path import missing_classes
from mcspark.engine.classic.store import respect_umask
from mcspark.errors import ConfigurationError
from mcspark.runtime.jars import CLASSES, add_lightgbm, checked_jars
from mcspark.runtime.session import CORRECTNESS


def test_results_do_not_depend_on_the_operators_defaults(spark: SparkSession) -> None:
    assert {key: spark.conf.get(key) for key in CORRECTNESS} == CORRECTNESS
    assert not any(word in key for key in CORRECTNESS for word in ("master", "memory", "partitions", "cores"))


def test_codes_keep_their_leading_zeros_in_partition_folders(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    spark.createDataFrame([("01", 1), ("36", 2)], "st string, x int").write.partitionBy("st").parquet(path)
    assert sorted(row.st for row in spark.read.parquet(path).collect()) == ["01", "36"]


def test_every_python_thread_sees_the_lightgbm_classes(spark: SparkSession) -> None:
    missing = [["not run"]]
    thread = threading.Thread(target=lambda: missing.append(missing_classes(CLASSES)))
    thread.start()
    thread.join()
    assert missing[-1] == []


def test_classes_that_are_there_are_not_resolved_again(spark: SparkSession, tmp_path: Path) -> None:
    add_lightgbm(spark, {"MCSPARK_JARS": str(tmp_path / "would be refused")})


def test_an_empty_jar_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="4 of the 4 needed are missing"):
        checked_jars(tmp_path)


def test_files_have_no_more_permissions_than_the_umask_gives(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own writers too, which ask Hadoop; and what the operator has forbidden stays forbidden."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    before, umask = hadoop.get("fs.permissions.umask-mode"), os.umask(0o077)
    try:
        respect_umask(spark, 0o077)
        assert hadoop.get("fs.permissions.umask-mode") == "077"
        spark.range(3).write.parquet(str(tmp_path / "private"))
        os.umask(0o022)
        hadoop.set("fs.permissions.umask-mode", "027")
        respect_umask(spark, 0o022)
        assert hadoop.get("fs.permissions.umask-mode") == "027"
        hadoop.set("fs.permissions.umask-mode", "u=rwx,g=rx,o=")
        respect_umask(spark, 0o022)
        assert hadoop.get("fs.permissions.umask-mode") == "u=rwx,g=rx,o="
    finally:
        os.umask(umask)
        if before is None:
            hadoop.unset("fs.permissions.umask-mode")
        else:
            hadoop.set("fs.permissions.umask-mode", before)
    files = [path for path in (tmp_path / "private").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if path.stat().st_mode & 0o077]


def test_names_of_java_are_asked_for_once(spark: SparkSession) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm.org.apache.hadoop.fs.Path is jvm.org.apache.hadoop.fs.Path
    assert jvm.py4j.reflection.TypeUtil is jvm.py4j.reflection.TypeUtil
    assert jvm.functions is jvm.functions
    assert jvm.SparkSession is jvm.SparkSession
    assert str(jvm.java.lang.Integer.valueOf(7)) == "7"
    # A class may come later, with a jar.
    assert jvm.org.apache.NoSuchClass is not jvm.org.apache.NoSuchClass

"""Files without a JVM: what the system does and refuses, in the words and errors of every store."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import IntegerType, StructType

from mcspark.engine.connect.parquet import MountedSchema
from mcspark.engine.connect.store import MountedStore
from mcspark.engine.errors import SPARK_ERRORS, FileNotFoundInStoreError, StoreError
from mcspark.runtime.process.causes import java_reason


@pytest.fixture
def store(tmp_path: Path) -> MountedStore:
    return MountedStore(str(tmp_path))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("file:/a/b", "/a/b"),
        ("file:///a/b/", "/a/b"),
        ("/a//b/../c%20d", "/a/c%20d"),
        ("//a", "/a"),
        ("/a/c:d", "/a/c:d"),
    ],
)
def test_names(path, name):
    assert MountedStore(path).local_name(path) == name
    assert MountedStore(path).full_name(path) == f"file:{name}"


def test_a_relative_path_begins_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert MountedStore("a/b").local_name("a/b") == str(tmp_path / "a/b")


@pytest.mark.parametrize("path", ["s3a://bucket/x", "hdfs:/x", "S3://b/x"])
def test_no_other_scheme(path):
    with pytest.raises(StoreError, match="on a file system that this machine and Spark"):
        MountedStore(path)


def test_what_is_written_is_there_until_it_is_deleted(store, tmp_path):
    place = str(tmp_path / "a[1]" / "b *.txt")
    assert store.make_folder(str(store.parent(place)))
    store.write(place, "zwölf".encode())
    assert (store.read_text(place), store.size(place)) == ("zwölf", 6)
    assert store.names(str(tmp_path / "a[1]")) == ["b *.txt"]
    assert store.entries(str(tmp_path)) == [("a[1]", True)]
    (name, size, when), = store.stamps(str(tmp_path / "a[1]"))  # fmt: skip
    assert (name, size) == ("b *.txt", 6)
    assert when == store.modified(place)
    assert store.below(str(tmp_path)) == [f"file:{place}"]
    assert not store.is_folder(place)
    with pytest.raises(StoreError, match="not empty"):
        store.delete(str(tmp_path / "a[1]"), whole=False)
    assert store.delete(str(tmp_path / "a[1]"), whole=True)
    assert not store.exists(place)
    assert not store.delete(place, whole=True)


def test_a_link_is_deleted_and_not_what_it_names(store, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert store.delete(str(tmp_path / "link"), whole=True)
    assert (tmp_path / "real" / "x").exists()


def test_renaming(store, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("1")
    other.write_text("2")
    store.replace(str(one), str(other))
    assert other.read_text() == "1"
    assert store.move(str(other), str(one))
    with pytest.raises(FileNotFoundInStoreError):
        store.move(str(other), str(one))


def test_patterns_are_of_names_below_a_folder_whose_own_name_is_none(store, tmp_path):
    for folder in ("[x]/ds=1", "[x]/ds=2", "[x]/other", "x/ds=3"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "_mark").touch()
    found = store.matching(str(tmp_path / "[x]"), "*=*/_mark")
    assert sorted(found) == [f"file:{tmp_path}/[x]/ds={i}/_mark" for i in (1, 2)]


def test_a_head_is_decompressed(store, tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"x,y\n1,2\n"))
    (tmp_path / "a.csv").write_bytes(b"x,y\n1,2\n")
    assert {store.head(str(tmp_path / name), 5) for name in ("a.csv.gz", "a.csv")} == {b"x,y\n1"}


def test_copies(store, tmp_path):
    (tmp_path / "from" / "deep").mkdir(parents=True)
    (tmp_path / "from" / "deep" / "x").write_text("1")
    (tmp_path / "to").mkdir()
    store.copy_to_local(f"file:{tmp_path}/from", str(tmp_path / "to"))
    store.copy_to_local(f"file:{tmp_path}/from/deep/x", str(tmp_path / "to"))
    assert (tmp_path / "to/from/deep/x").read_text() == (tmp_path / "to/x").read_text() == "1"


def test_what_is_not_there_is_told_as_by_every_store(store, tmp_path):
    for ask in (store.size, store.modified, store.read_text, store.names, store.stamps):
        with pytest.raises(SPARK_ERRORS) as error:
            ask(str(tmp_path / "nowhere"))
        assert "FileNotFound" in java_reason(error.value)


def test_footers(tmp_path):
    file = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": pa.array([1], pa.int32()), "t": pa.array([1], pa.time64("us"))}), file)
    schema = MountedSchema.of(None, file)  # type: ignore[arg-type]  # asked for types alone
    assert schema.text == "x (int32), t (time64[us])"
    (x, whole), (t, time) = schema.columns()
    assert (x, t) == ("x", "t")
    assert whole.struct() == StructType().add("x", IntegerType())
    with pytest.raises(SPARK_ERRORS):
        time.struct()
    with pytest.raises(FileNotFoundInStoreError):
        MountedSchema.of(None, file + "x")  # type: ignore[arg-type]
    (tmp_path / "b.parquet").write_text("no Parquet")
    with pytest.raises(StoreError, match="magic"):
        MountedSchema.of(None, str(tmp_path / "b.parquet"))  # type: ignore[arg-type]

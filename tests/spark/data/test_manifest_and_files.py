"""Manifests and small files: whole or not there, one a run, read with care."""

from __future__ import annotations

import json
import os
import stat

import pytest

from mcspark.data.leases.manifest import configuration_hash, read_manifest, write_manifest
from mcspark.errors import ConfigurationError, ContractError
from mcspark.runtime.files.files import Files, beside, leaf, parent

CONFIGURATION = {"scored": {"path": "s3a://id:secret@bucket/x"}, "split": {"seed": 7}}


def write(spark, tmp_path, run_id="r1", **result):
    return write_manifest(
        spark, str(tmp_path / "out"), run_id=run_id, job="calibrate", status="ok",
        configuration=CONFIGURATION, result=result,
    )  # fmt: skip


def test_manifest_comes_back_without_secrets(spark, tmp_path):
    path = write(spark, tmp_path, rows={"in": 3}, metrics={"loss": float("nan"), "list": [1.0, float("inf")]})
    text = Files(spark, path).read_text(path)
    assert "secret" not in text
    manifest = read_manifest(spark, path)
    assert manifest["rows"] == {"in": 3}
    assert manifest["metrics"] == {"loss": None, "list": [1.0, None]}
    assert manifest["configuration"]["split"] == {"seed": 7}
    assert set(manifest["versions"]) == {"python", "spark", "mcspark", "synapseml", "numpy"}
    assert manifest["versions"]["spark"] == spark.version


def test_one_manifest_a_run_and_readers_do_not_see_them(spark, tmp_path):
    spark.range(3).write.parquet(str(tmp_path / "out"))
    paths = [write(spark, tmp_path, run) for run in ("r1", "r2")]
    assert sorted(p.name for p in (tmp_path / "_out_manifests").iterdir()) == ["r1.json", "r2.json"]
    assert [read_manifest(spark, path)["run_id"] for path in paths] == ["r1", "r2"]
    assert spark.read.parquet(str(tmp_path / "out")).count() == 3


def test_hash_knows_settings_not_their_order():
    same = {"split": {"seed": 7}, "scored": dict(CONFIGURATION["scored"])}
    assert configuration_hash(same) == configuration_hash(CONFIGURATION)
    assert configuration_hash({**same, "split": {"seed": 8}}) != configuration_hash(CONFIGURATION)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "no readable manifest"),
        ("[]", "version None"),
        ('{"schema_version": 2}', "version 2; this program reads version 1"),
        ('{"schema_version": 1, "run_id": "x"}', r"lacks \['job', 'status'"),
        (json.dumps({"schema_version": 1, "x": "y" * 17_000_000}), "more than the"),
    ],
)
def test_bad_manifests_are_refused(spark, tmp_path, text, told):
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(ContractError, match=told):
        read_manifest(spark, str(tmp_path / "m.json"))
    with pytest.raises(ContractError, match="no such file"):
        read_manifest(spark, str(tmp_path / "none.json"))


@pytest.fixture(params=["local", "other"])
def files(spark, tmp_path, request):
    """The way of local disks, and that of all other file systems, here on a local disk too."""
    made = Files(spark, str(tmp_path))
    made.is_local = request.param == "local"
    return made


def test_text_is_replaced_with_the_permissions_of_the_user(files, tmp_path):
    path = f"{files.qualify(str(tmp_path))}/new/é.json"
    umask = os.umask(0o027)
    try:
        files.write_text(path, "{1}")
        files.write_text(path, "{é}")
    finally:
        os.umask(umask)
    assert files.read_text(path) == "{é}"
    assert files.head_bytes(path, 100).decode() == "{é}"
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["é.json"]
    if files.is_local:
        assert stat.S_IMODE((tmp_path / "new" / "é.json").stat().st_mode) & 0o111 == 0


def test_a_move_never_replaces(files, tmp_path):
    base = files.qualify(str(tmp_path))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with pytest.raises(FileExistsError):
        files.move(f"{base}/a", f"{base}/b")
    with pytest.raises(OSError, match="cannot be moved"):
        files.move(f"{base}/nothing", f"{base}/c")
    files.move(f"{base}/a", f"{base}/c")
    assert files.names(base) == ["b", "c"]
    assert files.names(f"{base}/none") == []


def test_unknown_file_system(spark):
    with pytest.raises(ConfigurationError, match="nofs://x/y: no file system"):
        Files(spark, "nofs://x/y")


@pytest.mark.parametrize("path", ["", ":x", "a_b:c", "file:relative", "//host/x"])
def test_no_path_is_refused_though_the_file_system_is_known(spark, path):
    assert Files(spark, "/a").is_local and Files(spark, "file:/a").is_local
    with pytest.raises(ConfigurationError, match=f"{path}: no file system for this path"):
        Files(spark, path)


def test_parts_of_paths():
    assert (parent("s3a://bucket/a/b/"), leaf("s3a://bucket/a/b/")) == ("s3a://bucket/a", "b")
    assert beside("file:/a/b", ".c") == "file:/a/.c"
    assert (parent("file:/a"), beside("file:/a", ".c")) == ("file:/", "file:/.c")
    assert (parent("s3a://b/a"), beside("s3a://b/a", "c")) == ("s3a://b/", "s3a://b/c")
    assert (parent("/a b?/#c"), beside("/a", "c"), parent("a")) == ("/a b?", "/c", ".")
    for root in ("s3a://bucket", "s3a://bucket/", "file:/", "hdfs://host:8020/", "/"):
        with pytest.raises(ConfigurationError, match="root of a file system"):
            parent(root)


def test_a_search_by_a_pattern_takes_its_folder_as_it_is_written(spark, tmp_path):
    for name in ("a[1]{b}\\c*", "a1bc"):
        (tmp_path / name / "ds=1").mkdir(parents=True)
        (tmp_path / name / "ds=1" / "x").touch()
    folder = str(tmp_path / "a[1]{b}\\c*")
    assert Files(spark, folder).matching(folder, "*=*/x") == [f"file:{folder}/ds=1/x"]

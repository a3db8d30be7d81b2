"""What a configuration needs beside Spark, and the folder of jars that serves where nothing is in reach."""

from __future__ import annotations

import hashlib
from typing import Any, cast

import pytest
from pyspark.errors import AnalysisException

from mcspark.config import Config
from mcspark.engine.classic.jvm import Platform
from mcspark.errors import ConfigurationError
from mcspark.runtime import formats
from mcspark.runtime.features import FEATURES, Build, Feature, features_of
from mcspark.runtime.formats import checked_jars, main, prepare, require_at_server

SPARK_3 = Platform("3.5", "2.12", "3.3.4")
SPARK_4 = Platform("4.1", "2.13", "3.4.2")


def config(**sections: Any) -> Config:
    plain = {"scored": {"path": "x", "key": ["id"]}, "attributes": [{"path": "y", "key": ["id"]}]}
    return Config.model_validate(plain | sections)


@pytest.mark.parametrize(
    ("sections", "needed"),
    [
        ({}, ()),
        ({"output": {"path": "z", "format": "delta"}}, ("delta",)),
        ({"output": {"table": "a.b", "format": "iceberg"}}, ("iceberg",)),
        ({"scored": {"path": "s3a://b/x", "format": "delta", "key": ["id"]}}, ("delta", "s3")),
        ({"model": {"path": "s3a://b/model"}}, ("s3",)),
        ({"drift": {"against": "s3a://b/model"}}, ("s3",)),
        ({"report": {"path": "hdfs://b/report.html"}}, ()),
    ],
)
def test_features_of_a_configuration(sections: Any, needed: tuple[str, ...]) -> None:
    assert features_of(config(**sections)) == needed


def test_nothing_is_prepared_for_nothing() -> None:
    assert prepare((), {}) == {}


def test_jars_of_a_folder_are_checked(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"one": b"1", "two": b"2"}
    jars = {hashlib.sha256(text).hexdigest(): f"org:{name}:1" for name, text in texts.items()}
    builds = {"Spark 3.5 with Scala 2.12": Build("a:b:1", jars)}
    monkeypatch.setitem(formats.FEATURES, "toy", Feature("", builds, "a.B"))
    monkeypatch.setattr(formats.jvm, "platform", lambda: SPARK_3)
    (tmp_path / "renamed.jar").write_bytes(b"1")
    (tmp_path / "other.jar").write_bytes(b"3")
    with pytest.raises(ConfigurationError, match=r"lacks two-1.*mcspark\.runtime\.formats .* toy"):
        checked_jars(tmp_path, "toy")
    (tmp_path / "0.jar").write_bytes(b"2")
    assert [jar.name for jar in checked_jars(tmp_path, "toy")] == ["renamed.jar", "0.jar"]


@pytest.mark.parametrize("arguments", [[], ["folder"], ["folder", "hudi"]])
def test_usage_of_the_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert " ".join(FEATURES) in capsys.readouterr().err


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("platform", [SPARK_3, SPARK_4])
def test_each_build_of_spark_gets_jars_of_its_own(name: str, platform: Platform) -> None:
    build = FEATURES[name].build_for(platform)
    assert build is not None
    if name == "s3":
        assert build.coordinate.endswith(platform.hadoop)
    else:
        assert f"_{platform.scala}:" in build.coordinate
    assert all(len(digest) == 64 for digest in build.jars)


def test_a_build_of_spark_without_known_jars_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats.jvm, "platform", lambda: Platform("3.5", "2.13", "3.3.6"))
    with pytest.raises(
        ConfigurationError, match=r"delta .* Scala 2\.13 .* but for Spark 3\.5 with Scala 2\.12 and"
    ):
        formats.build_of("delta")


class Server:
    """A session of Spark Connect: settings that its server has, and classes that its planner knows."""

    version = "4.1.4"

    def __init__(self, settings: dict[str, str], classes: set[str]) -> None:
        self.conf = self
        self._settings, self._classes = settings, classes

    def get(self, key: str, default: Any) -> Any:
        return self._settings.get(key, default)

    def sql(self, query: str) -> Any:
        known = any(f"'{name}'" in query for name in self._classes)
        kind = "UNEXPECTED_STATIC_METHOD" if known else "UNEXPECTED_CLASS_TYPE"
        raise AnalysisException(f"[DATATYPE_MISMATCH.{kind}] Cannot resolve")


DELTA = FEATURES["delta"]
RULES = {"spark.sql.extensions": f"a.B,{DELTA.extension}", **DELTA.settings}
CLASSES = {FEATURES[name].probe for name in ("delta", "iceberg")}


def test_a_server_that_has_all_is_taken() -> None:
    require_at_server(cast("Any", Server(RULES, CLASSES)), ("delta", "iceberg", "s3"))
    require_at_server(cast("Any", Server({}, set())), ())


@pytest.mark.parametrize(
    ("settings", "classes", "told"),
    [
        ({}, CLASSES, "--packages io.delta:delta-spark_4.1_2.13:4.4.0 --conf spark.sql.extensions=io.delta"),
        ({"spark.sql.extensions": DELTA.extension}, CLASSES, "--conf spark.sql.catalog.spark_catalog=org"),
        (RULES, {DELTA.probe}, "iceberg tables need.*iceberg-spark-runtime-4.1_2.13:1.11.0$"),
    ],
    ids=["no rules", "no catalog", "no classes"],
)
def test_what_a_server_lacks_is_told(settings: Any, classes: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        require_at_server(cast("Any", Server(settings, classes)), ("delta", "iceberg"))

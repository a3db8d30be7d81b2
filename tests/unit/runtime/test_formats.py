"""What a configuration needs beside Spark, and the folder of jars that serves where nothing is in reach."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from mcspark.config import Config
from mcspark.errors import ConfigurationError
from mcspark.runtime import formats
from mcspark.runtime.formats import FEATURES, Feature, checked_jars, features_of, main, prepare


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
    jars = {hashlib.sha256(text).hexdigest(): name for name, text in texts.items()}
    monkeypatch.setitem(formats.FEATURES, "toy", Feature("a:b:1", "", jars, "a.B"))
    (tmp_path / "renamed.jar").write_bytes(b"1")
    (tmp_path / "other.jar").write_bytes(b"3")
    with pytest.raises(ConfigurationError, match=r"lacks two.*mcspark\.runtime\.formats .* toy"):
        checked_jars(tmp_path, "toy")
    (tmp_path / "0.jar").write_bytes(b"2")
    assert [jar.name for jar in checked_jars(tmp_path, "toy")] == ["renamed.jar", "0.jar"]


@pytest.mark.parametrize("arguments", [[], ["folder"], ["folder", "hudi"]])
def test_usage_of_the_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert " ".join(FEATURES) in capsys.readouterr().err

"""A folder of jars is taken by content, never by file name."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from mcspark.errors import ConfigurationError
from mcspark.runtime import jars


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two jars, both needed, under names of somebody else's making, and one that is not needed."""
    contents = {"renamed-a.jar": b"first", "b.jar": b"second"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "aaa-other.jar").write_bytes(b"other")
    needed = {hashlib.sha256(content).hexdigest(): f"org:{name}:1.0" for name, content in contents.items()}
    monkeypatch.setattr(jars, "NEEDED", needed)
    return tmp_path


def test_the_needed_jars_are_found_and_no_others(folder: Path) -> None:
    assert [jar.name for jar in jars.checked_jars(folder)] == ["renamed-a.jar", "b.jar"]


def test_an_altered_jar_is_refused_by_name(folder: Path) -> None:
    (folder / "b.jar").write_bytes(b"second, with something more")
    with pytest.raises(ConfigurationError, match=r"1 of the 2 needed .* b\.jar-1\.0") as caught:
        jars.checked_jars(folder)
    assert caught.value.exit_code == 2


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"MCSPARK_JARS=.*nowhere is not a folder"):
        jars.checked_jars(tmp_path / "nowhere")


def test_four_jars_are_pinned() -> None:
    assert len(jars.NEEDED) == len(jars.CLASSES) == 4
    assert all(len(digest) == 64 for digest in jars.NEEDED)


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--help"]])
def test_wrong_usage_of_the_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert jars.main(arguments) == 2
    assert "usage" in capsys.readouterr().err

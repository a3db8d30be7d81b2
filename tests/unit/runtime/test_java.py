"""Which Java a Spark process gets."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from mcspark.errors import ConfigurationError
from mcspark.runtime import java


def make_java(home: Path, exit_code: int = 0) -> Path:
    """A stand-in for a Java installation whose `java -version` ends with `exit_code`."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return home


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = make_java(tmp_path / "packaged")
    monkeypatch.setattr(java, "packaged_java", lambda: home)
    return home


def test_java_home_wins_and_stays(tmp_path: Path, packaged: Path) -> None:
    home = make_java(tmp_path / "own")
    environ = {"JAVA_HOME": str(home), "PATH": str(make_java(tmp_path / "other") / "bin")}
    java.ensure_java(environ)
    assert environ["JAVA_HOME"] == str(home)


def test_a_java_on_the_path_needs_no_java_home(tmp_path: Path, packaged: Path) -> None:
    environ = {"PATH": str(make_java(tmp_path / "machine") / "bin")}
    java.ensure_java(environ)
    assert "JAVA_HOME" not in environ


@pytest.mark.parametrize("on_path", ["nothing", "placeholder"])
def test_without_a_working_java_the_packaged_one_serves(tmp_path: Path, packaged: Path, on_path: str) -> None:
    path = tmp_path / "empty"
    if on_path == "placeholder":
        path = make_java(tmp_path / "stub", exit_code=1) / "bin"
    environ = {"PATH": str(path)}
    java.ensure_java(environ)
    assert environ["JAVA_HOME"] == str(packaged)


def test_a_wrong_java_home_is_named(tmp_path: Path, packaged: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"JAVA_HOME=.*nowhere"):
        java.ensure_java({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": os.environ["PATH"]})


def test_no_java_at_all_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java, "packaged_java", lambda: None)
    with pytest.raises(ConfigurationError, match=r"mcspark\[local\]"):
        java.ensure_java({"PATH": str(tmp_path)})


def test_the_packaged_java_is_a_real_one() -> None:
    home = java.packaged_java()
    if home is None:
        pytest.skip("the extra `local` is not installed")
    assert java.works(home / "bin" / "java")

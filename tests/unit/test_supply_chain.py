"""What is installed is locked and hashed."""

from __future__ import annotations

import re
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[2]


def test_every_locked_package_has_hashes():
    """Each file of each package, but for the project itself."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    packages = [package for package in lock["package"] if "registry" in package["source"]]
    assert len(packages) > 50
    assert [p["name"] for p in lock["package"] if "registry" not in p["source"]] == ["mcspark"]
    for package in packages:
        files = [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]
        assert files, package["name"]
        for file in files:
            assert re.fullmatch(r"sha256:[0-9a-f]{64}", file["hash"]), (package["name"], file)


def test_jars_are_pinned_by_version_and_checksum():
    from mcspark.runtime.jars import COORDINATE, NEEDED

    assert re.fullmatch(r"[\w.]+:[\w.-]+:\d+\.\d+\.\d+", COORDINATE)
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in NEEDED)

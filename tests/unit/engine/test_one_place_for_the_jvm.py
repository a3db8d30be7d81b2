"""What a session without a JVM does not have is used in one package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import mcspark

SOURCES = Path(mcspark.__file__).parent
INNER = {"_jvm", "_jsc", "_jdf", "_jsparkSession", "sparkContext", "SparkContext", "SparkConf", "rdd", "py4j"}


def names(source: str) -> Iterator[tuple[int, str]]:
    """Names, attributes and parts of imported modules, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            for part in (*module.split("."), *(p for alias in node.names for p in alias.name.split("."))):
                yield node.lineno, part


def test_no_other_package_reaches_below_dataframes() -> None:
    files = [path for path in SOURCES.rglob("*.py") if SOURCES / "engine" not in path.parents]
    found = {
        f"{path.relative_to(SOURCES)}:{line}: {name}"
        for path in files
        for line, name in names(path.read_text(encoding="utf-8"))
        if name in INNER
    }
    assert len(files) > 100
    assert not found

"""The state of a table: a hash that differs when its files do, found by listing them, without reading a row.

Of Parquet and CSV it is made of the name, size and time of each file that a run reads, of one partition where
that is meant; of a table that commits by itself, of its commits, whatever partition they changed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession

from mcspark.config.tables import InputTable
from mcspark.data.publishing.target import described
from mcspark.data.tables import files_of_table, read_table
from mcspark.engine.errors import SPARK_ERRORS
from mcspark.errors import McsparkError
from mcspark.runtime.files.files import Files, leaf, parent

_COMMITS = {
    "delta": ("_delta_log", re.compile(r"\d+\.json")),
    "iceberg": ("metadata", re.compile(r".*\.metadata\.json")),
}


def table_state(spark: SparkSession, source: InputTable) -> str | None:
    """The state of a table that is read; None where it is unknown, as of a view over such a table."""
    try:
        if source.path and source.format in ("parquet", "csv"):
            partition = getattr(source, "partition", None) or {}
            return _of_files(spark, files_of_table(spark, source.path, source.format, partition).files)
        facts = {} if source.path else described(spark, str(source.table))
        provider = str(source.format if source.path else facts.get("Provider", "")).lower()
        if provider in _COMMITS:
            place = source.path or facts.get("Location")
            return None if place is None else _of_commits(spark, place, provider)
        return _of_files(spark, read_table(spark, source).inputFiles())
    except (McsparkError, OSError, *SPARK_ERRORS):
        return None  # the run will say what is wrong with it


def place_state(spark: SparkSession, path: str) -> str | None:
    """The state of a small file, or of the files directly in a folder, such as that of a model."""
    try:
        files = Files(spark, path)
        if not files.is_folder(path):
            return _of_files(spark, [path])
        return _hash(files.stamps(path))
    except (McsparkError, OSError, *SPARK_ERRORS):
        return None


def _of_files(spark: SparkSession, paths: Iterable[str]) -> str | None:
    wanted: dict[str, set[str]] = {}
    for path in paths:
        wanted.setdefault(parent(path), set()).add(leaf(path))
    found = []
    for folder, names in sorted(wanted.items()):
        files = Files(spark, folder)
        stamps = [stamp for stamp in files.stamps(folder) if stamp[0] in names]
        if len(stamps) < len(names):
            return None
        found.append((files.qualify(folder), stamps))
    return _hash(found) if found else None


def _of_commits(spark: SparkSession, table: str, provider: str) -> str | None:
    name, known = _COMMITS[provider]
    folder = f"{table.rstrip('/')}/{name}"
    commits = [stamp for stamp in Files(spark, folder).stamps(folder) if known.fullmatch(stamp[0])]
    return _hash(commits) if commits else None


def _hash(plain: Any) -> str:
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()

"""The manifest of a run: what ran, on what, with what result; one JSON file a run, beside the output."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pyspark.sql import SparkSession

from mcspark.config import redact
from mcspark.config.clashes import manifests_of
from mcspark.data.leases.manifest_form import MAX_BYTES, SCHEMA_VERSION, parse_manifest
from mcspark.errors import ContractError
from mcspark.runtime.files.files import Files, beside, leaf

KNOWN = re.compile('"configuration_hash"')
"""Found in every manifest."""


def folder(files: Files, output: str) -> str:
    """Folder of the manifests: a hidden sibling of the output, which is replaced as a whole."""
    place = files.qualify(output)
    return beside(place, manifests_of(leaf(place)))


def configuration_hash(configuration: Mapping[str, Any]) -> str:
    """SHA-256 of the configuration in canonical JSON: equal for equal settings, in any order."""
    canonical = json.dumps(redact(dict(configuration)), sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def versions(spark: SparkSession) -> dict[str, str]:
    """Versions of what shapes the result; ``absent`` for a library that is not installed."""
    found = {"python": platform.python_version(), "spark": str(spark.version)}
    return found | {name: _version(name) for name in ("mcspark", "synapseml", "numpy")}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def manifest_place(files: Files, output: str, run_id: str) -> str:
    """Where the manifest of a run lies."""
    return f"{folder(files, output)}/{run_id}.json"


def manifest_text(
    spark: SparkSession,
    *,
    run_id: str,
    job: str,
    status: str,
    configuration: Mapping[str, Any],
    result: Mapping[str, Any],
) -> str:
    """The manifest of a run.

    Parameters
    ----------
    spark : SparkSession
    run_id, job, status : str
    configuration : mapping
        Resolved, in plain JSON types; secrets in addresses are hidden.
    result : mapping
        Counts, metrics, timings, paths: the summary of the run, without secrets either. Numbers that are not
        finite become null.
    """
    manifest = {
        **redact(_finite(dict(result))),
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "job": job,
        "status": status,
        "configuration": redact(dict(configuration)),
        "configuration_hash": configuration_hash(configuration),
        "versions": versions(spark),
    }
    return json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_manifest(spark: SparkSession, output: str, *, run_id: str, **what: Any) -> str:
    """Write the manifest of a run that publishes nothing, and return its path.

    Parameters
    ----------
    spark : SparkSession
    output : str
        Path of the output table.
    run_id : str
    **what
        As of :func:`manifest_text`.
    """
    files = Files(spark, output)
    path = manifest_place(files, output, run_id)
    files.write_text(path, manifest_text(spark, run_id=run_id, **what))
    return path


def read_manifest(spark: SparkSession, path: str) -> dict[str, Any]:
    """Read a manifest.

    Raises
    ------
    ContractError
        If there is none, or it is too large, no JSON object, of another version, or incomplete.
    """
    try:
        return parse_manifest(Files(spark, path).read_text(path, limit=MAX_BYTES))
    except (OSError, ValueError) as error:
        raise ContractError(f"{path}: no readable manifest ({error})") from error


def _finite(plain: Any) -> Any:
    if isinstance(plain, float):
        return plain if math.isfinite(plain) else None
    if isinstance(plain, Mapping):
        return {str(key): _finite(value) for key, value in plain.items()}
    return [_finite(value) for value in plain] if isinstance(plain, (list, tuple)) else plain

"""The form of a manifest, which may be torn or forged; read without Spark."""

from __future__ import annotations

from typing import Any

from mcspark.identifiers import check_run_id
from mcspark.runtime.files.untrusted import read_json

SCHEMA_VERSION = 1

MAX_BYTES = 16 * 1024 * 1024
"""No manifest is larger."""

_REQUIRED = {
    "schema_version": int, "run_id": str, "job": str, "status": str, "configuration": dict,
    "configuration_hash": str, "versions": dict,
}  # fmt: skip


def parse_manifest(text: str) -> dict[str, Any]:
    """The manifest in a text; whatever the text is, nothing but ``ValueError`` is raised.

    Raises
    ------
    ValueError
        If it is no JSON object, of another version, incomplete, or its parts are of the wrong type.
    """
    manifest = read_json(text)
    found = manifest.get("schema_version") if isinstance(manifest, dict) else None
    if type(found) is not int or found != SCHEMA_VERSION:
        raise ValueError(f"a manifest of version {found!r}; this program reads version {SCHEMA_VERSION}")
    lacking = [name for name in _REQUIRED if name not in manifest]
    if lacking:
        raise ValueError(f"the manifest lacks {lacking}; it was not written by this program")
    wrong = [name for name, kind in _REQUIRED.items() if not isinstance(manifest[name], kind)]
    if wrong:
        raise ValueError(f"{wrong} of the manifest are of the wrong type; it was not written by this program")
    check_run_id(manifest["run_id"])
    return dict(manifest)

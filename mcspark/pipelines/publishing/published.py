"""Whether the same configuration has published a partition from the same input: by its manifests."""

from __future__ import annotations

import re
from typing import Any

import structlog

from mcspark.data.leases.lease import settled
from mcspark.data.leases.manifest import configuration_hash, folder, read_manifest
from mcspark.errors import ContractError
from mcspark.pipelines.publishing.record import target_of
from mcspark.pipelines.run import Run
from mcspark.runtime.files.files import Files

log = structlog.get_logger(__name__)

_STARTED = re.compile(r"(?P<job>[a-z]+)-(?P<time>\d{8}T\d{6}Z)-\w+\.json")
_RIVALS = {"calibrate": ("calibrate", "score"), "score": ("calibrate", "score"), "audit": ("audit",)}
"""Jobs that replace what a job has published."""


def published_by(run: Run) -> str | None:
    """The id of the run that has published what this run would publish; None where there is none.

    That is the last run of the partition that ended well, if it was the same job, its configuration has the
    same hash, all its inputs are in the state that they were in, and its output is still there. What a run
    that died has left half published is mended first.
    """
    target = target_of(run)
    settled(run.spark, target.leaf, run.run_id)
    files = Files(run.spark, target.leaf)
    place = folder(files, target.leaf)
    found = [match for name in files.names(place) if (match := _STARTED.fullmatch(name))]
    found = [match for match in found if match["job"] in _RIVALS[run.job]]
    age = {match[0]: (match["time"], files.modified(f"{place}/{match[0]}") or 0.0) for match in found}
    for name in sorted(age, key=lambda name: age[name], reverse=True):
        try:
            manifest = read_manifest(run.spark, f"{place}/{name}")
        except ContractError as error:
            log.warning("a manifest that cannot be read says nothing", reason=str(error))
            continue
        if manifest["status"] == "ok":
            there = run.job == "audit" or target.provider is not None or files.exists(target.leaf)
            return str(manifest["run_id"]) if there and _is_same(run, manifest) else None
    return None


def _is_same(run: Run, manifest: dict[str, Any]) -> bool:
    inputs = manifest.get("inputs")
    return (
        manifest["job"] == run.job
        and manifest["configuration_hash"] == configuration_hash(run.config.to_plain())
        and isinstance(inputs, dict)
        and all(run.inputs.values())
        and inputs == run.inputs
    )

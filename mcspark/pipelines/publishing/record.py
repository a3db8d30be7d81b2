"""Where the output of a run goes, and the manifest beside it that tells how the run ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcspark.data.leases.manifest import KNOWN, manifest_place, manifest_text, write_manifest
from mcspark.data.publishing.sink import Publication, Target
from mcspark.data.publishing.target import located
from mcspark.errors import ConfigurationError
from mcspark.pipelines.run import Run
from mcspark.runtime.files.files import Files


def target_of(run: Run) -> Target:
    """Where the output goes.

    Raises
    ------
    ConfigurationError
        If the configuration names no output, or one that cannot be written.
    """
    output = run.config.output
    if output is None:
        raise ConfigurationError(f"{run.job} needs an output: where the calibrated scores go")
    target = located(run.spark, output)
    return target.beside("candidate") if output.candidate else target


def stage_manifest(run: Run, publication: Publication, output: str, summary: Mapping[str, Any]) -> str:
    """Write the manifest of a run that ends as its summary says aside; returns its path."""
    path = manifest_place(Files(run.spark, output), output, run.run_id)
    result = {key: value for key, value in summary.items() if key not in ("status", "run_id")}
    text = manifest_text(
        run.spark,
        run_id=run.run_id,
        job=run.job,
        status=str(summary["status"]),
        configuration=run.config.to_plain(),
        result={**result, "seconds": run.seconds, "inputs": dict(run.inputs)},
    )
    publication.stage_text(path, text, KNOWN)
    return path


def failed_run(run: Run, status: str, error: str, exit_code: int) -> None:
    """Write the manifest of a run that has failed; there is no place for it without an output."""
    compared = run.config.compare.output
    if run.job == "compare" and compared is not None:
        place = compared.path
    elif run.job in ("calibrate", "score", "audit") and run.config.output is not None:
        place = target_of(run).leaf
    else:
        return
    write_manifest(
        run.spark,
        place,
        run_id=run.run_id,
        job=run.job,
        status=status,
        configuration=run.config.to_plain(),
        result={"error": error, "exit_code": exit_code, "seconds": run.seconds},
    )

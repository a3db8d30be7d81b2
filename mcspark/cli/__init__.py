"""The command line: the jobs as ``spark-submit`` runs them, and the command ``mcspark`` that runs it."""

from __future__ import annotations

from mcspark.cli.jobs import audit, backfill, benchmark, calibrate, check, compare, score
from mcspark.cli.prepare import prepare_acs

__all__ = ["audit", "backfill", "benchmark", "calibrate", "check", "compare", "main", "prepare_acs", "score"]


def main() -> None:
    """Entry point of the ``mcspark`` command."""
    from mcspark.cli.app import app  # noqa: PLC0415  (the jobs do not need it)

    app()

"""What a run has left on this machine: its manifest, its metrics table, who made a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from mcspark.cli.files import local_place
from mcspark.errors import ContractError
from mcspark.report.metrics_table import MetricsTable
from mcspark.runtime.untrusted import read_json

MAX_BYTES = 64 * 1024 * 1024


def json_object(place: Path) -> dict[str, Any]:
    """The object in a JSON file; a ``ContractError`` where there is none."""
    try:
        if place.stat().st_size > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES} bytes")
        plain = read_json(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ContractError(f"{place}: no readable manifest or model ({error})") from error
    if not isinstance(plain, dict):
        raise ContractError(f"{place}: no manifest and no model; it is no JSON object")
    return plain


def metrics_at(path: Any) -> MetricsTable | None:
    """The metrics table at a path; None where nothing is there, a ``ContractError`` where it is another."""
    if not path or not (place := local_place(str(path))).exists():
        return None
    try:
        return MetricsTable(pd.read_parquet(place))
    except (OSError, ValueError, NotImplementedError) as error:  # the last for types that are not read
        raise ContractError(f"{place}: no metrics table of mcspark ({error})") from error

"""What a run has left on this machine: its manifest, its metrics table, who made a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from mcspark.cli.files import local_place
from mcspark.errors import ContractError
from mcspark.report.metrics_table import MetricsTable, of_score
from mcspark.report.segments import checked_segments
from mcspark.runtime.files.untrusted import read_json

MAX_BYTES = 64 * 1024 * 1024

Made = TypeVar("Made")


def text_in(place: Path, limit: int = MAX_BYTES) -> str:
    """The text of a file; ``OSError`` or ``ValueError`` where there is none of so many bytes to be had."""
    if place.stat().st_size > limit:
        raise ValueError(f"larger than {limit} bytes")
    return place.read_text(encoding="utf-8")


def frame_in(place: Path, **how: Any) -> pd.DataFrame:
    """The table in Parquet; ``OSError`` or ``ValueError`` where there is none to be had."""
    try:
        return pd.read_parquet(place, **how)
    except NotImplementedError as error:  # a type that Arrow does not turn into pandas
        raise ValueError(str(error)) from error


def json_object(place: Path) -> dict[str, Any]:
    """The object in a JSON file; a ``ContractError`` where there is none."""
    try:
        plain = read_json(text_in(place))
    except (OSError, ValueError) as error:
        raise ContractError(f"{place}: no readable manifest or model ({error})") from error
    if not isinstance(plain, dict):
        raise ContractError(f"{place}: no manifest and no model; it is no JSON object")
    return plain


def metrics_at(path: Any, score: str | None = None) -> MetricsTable | None:
    """The metrics table at a path; None where nothing is there, a ``ContractError`` where it is another.

    Of the table of several scores it is that of the score.
    """
    return _made_at(path, lambda frame: MetricsTable(of_score(frame, score)), "metrics table")


def segments_at(path: Any) -> pd.DataFrame | None:
    """The table of segments at a path; None and a ``ContractError`` as of :func:`metrics_at`."""
    return _made_at(path, checked_segments, "table of segments")


def _made_at(path: Any, make: Callable[[pd.DataFrame], Made], what: str) -> Made | None:
    if not path or not (place := local_place(str(path))).exists():
        return None
    try:
        return make(frame_in(place))
    except (OSError, ValueError) as error:
        raise ContractError(f"{place}: no {what} of mcspark ({error})") from error

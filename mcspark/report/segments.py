"""The table of segments of a run, as pandas; it is not trusted where it is read back."""

from __future__ import annotations

from typing import Any

import pandas as pd

TEXTS = ("segment", "reason", "worst_group")
COUNTS = ("number", "rows", "test_rows", "groups", "trees", "levels")
NUMBERS = (
    "error_before", "error_after", "noise_floor", "noise_floor_high", "p_value", "beyond_chance",
    "loss_before", "loss_after",
)  # fmt: skip
_WANTED = {"own", *TEXTS, *COUNTS, *NUMBERS}


def is_segments(frame: pd.DataFrame) -> bool:
    """Whether it has the columns of a table of segments."""
    return set(frame.columns) >= _WANTED


def checked_segments(frame: pd.DataFrame) -> pd.DataFrame:
    """The table in its order.

    Raises
    ------
    ValueError
        If a column is missing or of another type.
    """
    if missing := sorted(_WANTED - set(frame.columns)):
        raise ValueError(f"the column(s) {missing} are missing")
    for name in (*COUNTS, *NUMBERS):
        if not (pd.api.types.is_numeric_dtype(frame[name]) or frame[name].isna().all()):
            raise ValueError(f"the column {name!r} holds no numbers")
    if not pd.api.types.is_bool_dtype(frame["own"]):
        raise ValueError("the column 'own' is not true or false alone")
    for name in TEXTS:
        if not frame[name].dropna().map(lambda value: isinstance(value, str)).all():
            raise ValueError(f"the column {name!r} holds more than text")
    return frame.sort_values("number", kind="stable", ignore_index=True)


def segment_records(frame: pd.DataFrame, most: int) -> list[dict[str, Any]]:
    """The first rows, by the names of their columns."""
    rows: Any = frame.head(most).to_dict("records")
    return list(rows)

"""JSON that may be damaged or forged."""

from __future__ import annotations

import json
import math
from typing import Any


def read_json(text: str) -> Any:
    """The value of a text; whatever the text is, nothing but ``ValueError`` is raised.

    Raises
    ------
    ValueError
        If it is no JSON, is nested too deep, or has a number that is not finite.
    """
    try:
        return json.loads(text, parse_constant=_number, parse_float=_number)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):  # such as NaN, and 1e999
        raise ValueError(f"{text[:40]} is no finite number")
    return value

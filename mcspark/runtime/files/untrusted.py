"""JSON that may be damaged or forged."""

from __future__ import annotations

import json
import math
import re
from typing import Any

_MAYBE_HALF = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")
"""One of a pair of surrogates: no text with a single one can be written to a file."""


def read_json(text: str) -> Any:
    """The value of a text; whatever the text is, nothing but ``ValueError`` is raised.

    Raises
    ------
    ValueError
        If it is no JSON, is nested too deep, or has a number that is not finite or half a character.
    """
    try:
        value = json.loads(text, parse_constant=_number, parse_float=_number)
        if _MAYBE_HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    except UnicodeEncodeError as error:
        raise ValueError(f"{error.object[error.start]!r} is half a character") from error
    return value


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):  # such as NaN, and 1e999
        raise ValueError(f"{text[:40]} is no finite number")
    return value

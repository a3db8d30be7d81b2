"""A small valid configuration to change in tests."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

_SMALL: dict[str, Any] = {
    "scored": {"path": "data/scored", "key": ["id", "part"]},
    "attributes": [{"path": "data/attributes", "key": ["id", "part"]}],
}


def small(**sections: Any) -> dict[str, Any]:
    """The smallest configuration, with the sections merged one level deep."""
    plain = deepcopy(_SMALL)
    for name, value in sections.items():
        both = isinstance(value, dict) and isinstance(plain.get(name), dict)
        plain[name] = {**plain[name], **value} if both else value
    return plain

"""The fitted calibrators by the name of their method."""

from __future__ import annotations

from typing import Any

from mcspark.core.stages import Stages

Calibrator = Stages
"""A fitted calibrator: scores rows by signature, and has a plain form."""

_KINDS: dict[str, type[Calibrator]] = {"trees": Stages, "none": Stages}


def calibrator_from_dict(method: str, plain: Any) -> Calibrator:
    """Rebuild the calibrator of a method from its plain form; the input is untrusted.

    Raises
    ------
    ValueError
        If there is no such method, or the plain form is not its own.
    """
    if method not in _KINDS:
        raise ValueError(f"unknown method {method!r}; known are {', '.join(sorted(_KINDS))}")
    return _KINDS[method].from_dict(plain)

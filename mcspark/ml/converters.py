"""Converters of Spark ML parameters that also refuse values out of range, when they are set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.ml.param import TypeConverters

from mcspark.config.calibrator import MAX_ROUNDS

Converter = Callable[[Any], Any]

_MOST = 2**31 - 1


def named(name: str, converter: Converter) -> Converter:
    """The converter, naming its parameter in what it refuses."""

    def convert(value: Any) -> Any:
        try:
            return converter(value)
        except ValueError as error:
            raise ValueError(f"{name} {error}") from None

    return convert


def whole(low: int, high: int = _MOST) -> Converter:
    """Whole numbers in ``low..high``."""

    def convert(value: Any) -> int:
        return _within(TypeConverters.toInt(value), low, high, f"a whole number from {low} to {high}")

    return convert


def above_zero(high: float) -> Converter:
    """Numbers above 0 and no greater than ``high``."""

    def convert(value: Any) -> float:
        number = TypeConverters.toFloat(value)
        if not 0 < number <= high:
            raise ValueError(f"must be above 0 and at most {high:g}, not {value!r}")
        return float(number)

    return convert


def one_of(*words: str) -> Converter:
    """One of a few words."""

    def convert(value: Any) -> str:
        if value not in words:
            raise ValueError(f"must be {' or '.join(words)}, not {value!r}")
        return str(value)

    return convert


def rounds(value: Any) -> str:
    """A number of stages as text, or ``auto``."""
    text = str(value)
    if text != "auto" and not (text.isdecimal() and text.isascii() and 1 <= int(text) <= MAX_ROUNDS):
        raise ValueError(f"must be a whole number from 1 to {MAX_ROUNDS}, or auto, not {value!r}")
    return text


def grids(value: Any) -> list[int]:
    """Numbers of levels, at least one."""
    found = [_within(m, 1, 1000, "whole numbers from 1 to 1000") for m in TypeConverters.toListInt(value)]
    if not found:
        raise ValueError("is empty; give at least one number of levels, such as [20]")
    return found


def penalties(value: Any) -> list[float]:
    """Strengths of a penalty, at least one, none negative."""
    found = [float(p) for p in TypeConverters.toListFloat(value)]
    if not found or not all(0 <= p < float("inf") for p in found):
        raise ValueError(f"must be one or more numbers from 0, not {value!r}")
    return found


def _within(value: int, low: int, high: int, wanted: str) -> int:
    if not low <= value <= high:
        raise ValueError(f"must be {wanted}, not {value!r}")
    return value

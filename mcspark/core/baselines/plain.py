"""Reading the plain JSON form of a fit: nothing in a stored model is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mcspark.core.cells.levels import FloatArray, IntArray

MAX_LEVELS = 10_000
"""Grids beyond this are refused on load, before anything of that size is made."""


def _entry(plain: Mapping[str, Any], name: str) -> Any:
    if not isinstance(plain, Mapping):
        raise ValueError(f"a fit is stored as a mapping, got {type(plain).__name__}")
    if name not in plain:
        raise ValueError(f"the stored fit has no entry {name!r}; it has {sorted(map(str, plain))}")
    return plain[name]


def _within(name: str, value: Any, low: float, high: float) -> None:
    inside = (value >= low) & (value <= high)  # NaN is not inside
    if not np.all(inside):
        bad = np.asarray(value)[~np.asarray(inside)].reshape(-1)
        raise ValueError(f"{name} must be within {low}..{high}: {bad.size} values are not, such as {bad[0]}")


def read_int(plain: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """Whole number ``plain[name]`` in ``low..high``; ValueError otherwise."""
    value = _entry(plain, name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    _within(name, value, low, high)
    return value


def read_float(plain: Mapping[str, Any], name: str, low: float, high: float) -> float:
    """Finite number ``plain[name]`` in ``low..high``; ValueError otherwise."""
    value = _entry(plain, name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {value!r}")
    _within(name, value, low, high)
    return float(value)


def read_ints(
    plain: Mapping[str, Any], name: str, shape: tuple[int | None, ...], low: int, high: int
) -> IntArray:
    """Whole numbers in ``low..high`` of this shape (None: any length); ValueError otherwise."""
    array = _array(plain, name, shape)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold whole numbers only")
    _within(name, array, low, high)
    return np.asarray(array, dtype=np.int64)


def read_floats(
    plain: Mapping[str, Any], name: str, shape: tuple[int | None, ...], low: float, high: float
) -> FloatArray:
    """Finite numbers in ``low..high`` of this shape (None: any length); ValueError otherwise."""
    array = _array(plain, name, shape)
    if array.size and array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must hold numbers only")
    _within(name, array, low, high)
    return np.asarray(array, dtype=np.float64)


def _array(plain: Mapping[str, Any], name: str, shape: tuple[int | None, ...]) -> Any:
    value = _entry(plain, name)
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, got {type(value).__name__}")
    if not value and shape[0] in (None, 0):
        return np.zeros([length or 0 for length in shape])
    try:
        array = np.array(value)
    except ValueError:
        raise ValueError(f"{name} must be a list of lists of equal lengths") from None
    fits = array.ndim == len(shape) and all(
        wanted is None or got == wanted for got, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = " x ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"{name} must have the shape {wanted}, got {array.shape}")
    return array

"""Values of a condition, one a row or one for all, compared and converted as Spark compares and converts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]

_PLAIN_INTEGER = re.compile(r"[ \t\n\r]*([-+]?[0-9]{1,18})[ \t\n\r]*")
_MAYBE_INTEGER = re.compile(r"[\x00-\x20\x7f-\x9f]*[-+]?[0-9]*\.?[0-9]*[\x00-\x20\x7f-\x9f]*")
_LARGE = 2**62


class NotHereError(Exception):
    """Something that Spark evaluates and this program does not without it."""


@dataclass(frozen=True, eq=False)
class Value:
    """A value a row, or one for all rows.

    Attributes
    ----------
    kind : str
        ``boolean``, ``whole``, ``float``, ``text``, ``decimal`` (a literal) or ``null``.
    data : ndarray, shape (N,) or (1,)
        The values; of a text its place among ``words``.
    valid : ndarray of bool, shape (N,) or (1,)
        False where the value is null.
    bits : int
        Width of whole numbers.
    literal : Decimal, optional
        The number of a literal.
    words : tuple of str
        Distinct texts.
    """

    kind: str
    data: NDArray[Any]
    valid: BoolArray
    bits: int = 32
    literal: Decimal | None = None
    words: tuple[str, ...] = ()


VALID = np.ones(1, dtype=bool)
NULL = Value("null", np.zeros(1), ~VALID)
TRUE = Value("boolean", VALID, VALID)

COMPARE: dict[str, Callable[..., Any]] = {
    "eq": np.equal, "neq": np.not_equal, "gt": np.greater, "gte": np.greater_equal, "lt": np.less,
    "lte": np.less_equal,
}  # fmt: skip


def text(words: tuple[str, ...], data: NDArray[Any], valid: BoolArray) -> Value:
    """Texts by their places among distinct ones."""
    return Value("text", data, valid, words=words)


def booleans(*values: Value) -> list[Value]:
    """The values as truths that are False where they are null."""
    for value in values:
        if value.kind not in ("boolean", "null"):
            raise NotHereError(f"{value.kind} where true or false is needed")
    return [Value("boolean", v.data.astype(bool) & v.valid, v.valid) for v in values]


def both(a: Value, b: Value) -> Value:
    """SQL's AND of two truths."""
    a, b = booleans(a, b)
    false = (a.valid & ~a.data) | (b.valid & ~b.data)
    return Value("boolean", a.data & b.data, (a.valid & b.valid) | false)


def either(a: Value, b: Value) -> Value:
    """SQL's OR of two truths."""
    a, b = booleans(a, b)
    true = a.data | b.data
    return Value("boolean", true, (a.valid & b.valid) | true)


def compared(name: str, a: Value, b: Value) -> Value:
    """A comparison by the name of its operator: ``eq``, ``lt``, …, ``nullsafeeq``, ``nullsafeneq``."""
    known = "null" not in (a.kind, b.kind)
    if known:
        a, b = _alike(a, b)
    data = COMPARE[name.removeprefix("nullsafe")](a.data, b.data) if known else ~VALID
    valid = a.valid & b.valid
    if not name.startswith("nullsafe"):
        return Value("boolean", data, valid)
    unlike = name == "nullsafeneq"
    differs = (a.valid != b.valid) | (valid & (data if unlike else ~data))
    return Value("boolean", differs if unlike else ~differs, VALID)


def _alike(a: Value, b: Value) -> tuple[Value, Value]:
    """Two values whose data NumPy compares as Spark compares the given ones."""
    kinds = {a.kind, b.kind}
    if kinds == {"text"}:
        rank = {word: i for i, word in enumerate(sorted({*a.words, *b.words}))}
        return _ranked(a, rank), _ranked(b, rank)
    if len(kinds) == 1:
        return a, b
    if kinds == {"whole", "decimal"}:
        if b.kind == "decimal":
            return _beside_decimal(a, b)
        after, before = _beside_decimal(b, a)
        return before, after
    if kinds <= {"whole", "float", "decimal"}:
        return as_float(a), as_float(b)
    if kinds == {"text", "whole"}:
        bits = (a if a.kind == "whole" else b).bits
        return tuple(as_whole(v, bits) if v.kind == "text" else v for v in (a, b))  # type: ignore[return-value]
    raise NotHereError(f"{a.kind} and {b.kind} side by side")


def _ranked(value: Value, rank: dict[str, int]) -> Value:
    # Python orders by code points, which is the order of the bytes of UTF-8.
    places = np.array([*(rank[word] for word in value.words), -1])
    return replace(value, data=places[value.data])


def _beside_decimal(whole: Value, decimal: Value) -> tuple[Value, Value]:
    """A whole number beside a decimal one, exactly: both doubled if that lies between whole numbers."""
    number = decimal.literal
    if number is None or abs(number) >= _LARGE or ((whole.data >= _LARGE) | (whole.data <= -_LARGE)).any():
        raise NotHereError("numbers too large to be compared exactly")
    floor = int(number.to_integral_value("ROUND_FLOOR"))
    if number == floor:
        return whole, replace(decimal, kind="whole", data=np.array([floor]))
    doubled = replace(decimal, kind="whole", data=np.array([2 * floor + 1]))
    return replace(whole, data=2 * whole.data), doubled


def as_float(value: Value) -> Value:
    """Numbers as doubles."""
    return replace(value, kind="float", data=value.data.astype(np.float64), bits=64, literal=None)


def as_whole(value: Value, bits: int) -> Value:
    """Texts as whole numbers; what no reading of Spark's takes for one is null, what one may is refused."""
    numbers, valid = (
        np.zeros(len(value.words) + 1, dtype=np.int64),
        np.zeros(len(value.words) + 1, dtype=bool),
    )
    for i, word in enumerate(value.words):
        if found := _PLAIN_INTEGER.fullmatch(word):
            valid[i] = _fits(int(found[1]), bits)
            numbers[i] = int(found[1]) if valid[i] else 0
        elif word and _MAYBE_INTEGER.fullmatch(word):
            raise NotHereError(f"whether {word!r} is a whole number")
    return Value("whole", numbers[value.data], valid[value.data] & value.valid, bits)


def _fits(number: int, bits: int) -> bool:
    return -(1 << (bits - 1)) <= number < 1 << (bits - 1)

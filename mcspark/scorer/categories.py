"""The code of every row in every family of groups, equal to what ``mcspark.ml.cells.groups`` makes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np

from mcspark.core.cells.decimals import divided
from mcspark.core.cells.groups import Category, Family
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.errors import ContractError
from mcspark.scorer.columns import Column
from mcspark.scorer.conditions import Condition

ColumnOf = Callable[[str], Column]

_SMALL_SPAN = 2**16
_JAVA = re.compile(r"-?(\d|[1-9]\d*)\.(\d|\d*[1-9])(E-?[1-9]\d*)?")
_PLENTY = Context(prec=100)


class FamilyCodes:
    """Codes of one family, laid out once.

    Parameters
    ----------
    family : Family

    Raises
    ------
    ConfigurationError
        If it has a condition that cannot be evaluated without Spark.
    """

    def __init__(self, family: Family) -> None:
        self._family = family
        self._condition = Condition(family.column, family.where) if family.where is not None else None
        if family.kind == "value" and not any(isinstance(c, int) for c in family.categories):
            self._doubles = [_java_double(str(c)) for c in family.categories]

    def of(self, column_of: ColumnOf) -> IntArray:
        """Codes of the rows, shape (N,): 0 for none of the groups, else the place of the group from 1."""
        family = self._family
        if self._condition is not None:
            return self._condition.holds(column_of).astype(np.int64)
        column = column_of(family.column)
        if family.kind == "value":
            return self._of_values(column)
        with np.errstate(invalid="ignore", over="ignore"):
            numbers = column.numbers()
            if family.kind == "divide":
                whole = divided(numbers, float(family.divide_by or 1))
                return _looked_up(whole, np.array([float(c) for c in family.categories]))
            return self._of_bins(numbers)

    def _of_bins(self, numbers: FloatArray) -> IntArray:
        edges = np.array(self._family.bins)
        code = np.zeros(len(edges) + 1, dtype=np.int64)
        for i, category in enumerate(self._family.categories):
            code[int(category) + 1] = i + 1
        # NaN is sorted behind every edge: it is in no bin, as is what lies outside.
        return code[np.searchsorted(edges, numbers, side="right")]

    def _of_values(self, column: Column) -> IntArray:
        categories = self._family.categories
        if not categories or column.kind == "null":
            return np.zeros(len(column), dtype=np.int64)
        whole = isinstance(categories[0], int)
        column = column.whole() if whole else column
        if (column.kind == "whole") != whole:
            raise ContractError(
                f"column {column.name!r} is {column.kind}, but was {'whole numbers' if whole else 'text'} "
                "when the groups were chosen; store it with that type"
            )
        if whole:
            code = _looked_up(column.data, np.array(categories, dtype=np.int64))
            return code if column.missing is None else np.where(column.missing, 0, code)
        if column.kind == "float":
            return _looked_up(column.data, np.array(self._doubles))
        code_of: dict[Category | None, int] = {c: i for i, c in enumerate(categories, start=1)}
        codes = [code_of.get(_text(value), 0) for value in column.values]
        return np.asarray(np.array([*codes, 0])[column.data], dtype=np.int64)


def _looked_up(data: Any, keys: Any) -> IntArray:
    """Place from 1 of each number among ``keys``, 0 where it is none of them."""
    if not len(keys):
        return np.zeros(len(data), dtype=np.int64)
    if data.dtype == np.int64 and (span := int(keys.max()) - int(keys.min()) + 1) <= _SMALL_SPAN:
        low = int(keys.min())
        table = np.zeros(span + 1, dtype=np.int64)
        table[keys - low] = np.arange(1, len(keys) + 1)
        inside = (data >= low) & (data < low + span)
        return np.asarray(table[np.where(inside, data - low, span)], dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    place = np.minimum(np.searchsorted(keys[order], data), len(keys) - 1)
    return np.asarray(np.where(keys[order][place] == data, order[place] + 1, 0), dtype=np.int64)


def _text(value: Any) -> str | None:
    """A value as Spark casts it to text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return _decimal_text(value)
    return None if value is None else str(value)


def _decimal_text(value: Decimal) -> str:
    """The shortest text, as a double's, where that double is this decimal; else the decimal itself."""
    scale = -int(value.as_tuple().exponent)
    if scale <= 0:
        return str(value)
    near = java_text(float(value) + 0.0)
    same = Decimal(near).quantize(value, ROUND_HALF_UP, _PLENTY) == value
    return near if same else str(value)


def java_text(number: float) -> str:
    """A double as Java and Spark write it: ``1.0``, ``1.0E-4``, ``1.2345678E7``.

    Examples
    --------
    >>> [java_text(x) for x in (1.0, 0.001, 0.0001, 12345678.0, -0.5)]
    ['1.0', '0.001', '1.0E-4', '1.2345678E7', '-0.5']
    """
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        # Python writes exponents for what is smaller or larger than this only.
        return repr(number)
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    power = len(digits) + int(exponent) - 1
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"


def _java_double(text: str) -> float:
    """The double that Java writes as this text; NaN, which equals nothing, where it never does."""
    if text in ("Infinity", "-Infinity"):
        return float(text.lower().replace("infinity", "inf"))
    if not _JAVA.fullmatch(text):
        return math.nan
    number = float(text)
    # An older Java may write a digit more than it takes, but never another layout.
    plain = number == 0 or 1e-3 <= abs(number) < 1e7
    layout = ("E" not in text and text != "-0.0") if plain else text.lstrip("-")[1:2] == "." and "E" in text
    return number if layout else math.nan

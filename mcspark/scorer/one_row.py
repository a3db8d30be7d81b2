"""The code of one row in a family of groups by plain Python, for the values that nearly every row has.

Whole numbers, doubles, texts and None are looked up here. Whatever else comes, and every condition with more
than comparisons, is left to :class:`~mcspark.scorer.categories.FamilyCodes`, which computes the same in more
time; so are the values that it refuses.
"""

from __future__ import annotations

import math
import operator
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from mcspark.core.cells.decimals import LARGEST_EXACT, LARGEST_WHOLE, decimal_ratio
from mcspark.core.cells.groups import Family
from mcspark.identifiers import folded

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Code = Callable[..., int]
_Truth = Callable[[Sequence[Any]], "bool | None"]

_LIMIT = 2**62
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "neq": operator.ne, "gt": operator.gt, "gte": operator.ge, "lt": operator.lt,
    "lte": operator.le,
}  # fmt: skip


class OtherValueError(Exception):
    """A value, or a condition, that is not looked up here."""


def one_row_code(family: Family) -> Code | None:
    """A function of the values of the family's columns; it raises :class:`OtherValueError`.

    None if the family has nothing that this module evaluates.
    """
    if family.where is not None:
        return _condition(family)
    code = {"value": _value_code, "bins": _bins_code, "divide": _divide_code}[family.kind](family)

    def of(value: Any) -> int:
        return 0 if value is None else code(value)

    return of


def _value_code(family: Family) -> Code:
    places: dict[Any, int] = {category: place for place, category in enumerate(family.categories, start=1)}
    kind = type(family.categories[0]) if family.categories else str

    def of(value: Any) -> int:
        if type(value) is not kind or (type(value) is int and not -_LIMIT < value < _LIMIT):
            raise OtherValueError
        return places.get(value, 0)

    return of


def _number(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is int and -_LIMIT < value < _LIMIT:
        return float(value)
    raise OtherValueError


def _bins_code(family: Family) -> Code:
    edges = list(family.bins or ())
    codes = [0] * (len(edges) + 1)
    for place, category in enumerate(family.categories, start=1):
        codes[int(category) + 1] = place
    # NaN is behind every edge for bisection too.
    return lambda value: codes[bisect_right(edges, _number(value))]


def _divide_code(family: Family) -> Code:
    divide_by = float(family.divide_by or 1)
    top, bottom = decimal_ratio(divide_by)
    places: dict[float, int] = {}
    for place, category in enumerate(family.categories, start=1):
        places.setdefault(float(category), place)

    def of(value: Any) -> int:
        number = _number(value)
        quotient = number / divide_by
        if not abs(quotient) < LARGEST_WHOLE:
            return 0
        guess = float(math.floor(quotient))
        if abs(guess) < LARGEST_EXACT:
            guess += (number >= (guess + 1) * top / bottom) - (number < guess * top / bottom)
        return places.get(guess, 0)

    return of


def _condition(family: Family) -> Code | None:
    from sqlglot import parse_one  # noqa: PLC0415  (models without conditions need no parser)

    place = {folded(name): i for i, name in enumerate(family.columns)}
    try:
        truth = _truth(parse_one(str(family.where), dialect="spark"), place)
    except OtherValueError:
        return None
    return lambda *values: 1 if truth(values) else 0


def _truth(node: Expr, place: dict[str, int]) -> _Truth:
    if node.key == "paren":
        return _truth(node.this, place)
    if node.key == "not":
        one = _truth(node.this, place)
        return lambda row: None if (found := one(row)) is None else not found
    if node.key in ("and", "or"):
        return _joined(_truth(node.this, place), _truth(node.args["expression"], place), end=node.key == "or")
    return _test(node, _column(node.this, place))


def _test(node: Expr, at: int) -> _Truth:
    """A condition on the value of one column."""
    if node.key in _COMPARE:
        return _compared(_COMPARE[node.key], at, _literal(node.expression))
    if node.key == "between":
        low = _compared(operator.ge, at, _literal(node.args["low"]))
        return _joined(low, _compared(operator.le, at, _literal(node.args["high"])), end=False)
    if node.key == "in" and node.expressions:
        options = [_literal(option) for option in node.expressions]
        if len({type(option) for option in options}) == 1:
            tests = [_compared(operator.eq, at, option) for option in options]
            return lambda row: None if tests[0](row) is None else any(test(row) for test in tests)
    if node.key == "is" and node.expression.key == "null":
        return lambda row: _plain(row[at]) is None
    raise OtherValueError


def _joined(one: _Truth, two: _Truth, end: bool) -> _Truth:
    """AND (``end`` False) and OR (True): one such value decides, else one null does."""

    def of(row: Sequence[Any]) -> bool | None:
        a, b = one(row), two(row)  # both, so that what is refused does not depend on the other
        if a is end or b is end:
            return end
        return None if a is None or b is None else not end

    return of


def _column(node: Expr | None, place: dict[str, int]) -> int:
    if node is None or node.key != "column" or folded(node.name) not in place:
        raise OtherValueError
    return place[folded(node.name)]


def _literal(node: Expr) -> str | int | Decimal:
    sign = -1 if node.key == "neg" else 1
    node = node.this if node.key == "neg" else node
    if node.key != "literal" or (node.is_string and sign < 0):
        raise OtherValueError
    if node.is_string:
        return str(node.this)
    if not re.fullmatch(r"[0-9]{1,18}(\.[0-9]{0,15})?", node.this):
        raise OtherValueError
    return sign * (Decimal(node.this) if "." in node.this else int(node.this))


def _plain(value: Any) -> Any:
    """None for null and NaN; what is neither a whole number nor a double nor a text is not for here."""
    if value is None or type(value) is str:
        return value
    if type(value) is int and -_LIMIT < value < _LIMIT:
        return value
    if type(value) is float:
        return None if math.isnan(value) else value
    raise OtherValueError


def _compared(test: Callable[[Any, Any], bool], at: int, literal: str | int | Decimal) -> _Truth:
    """Whole numbers are compared exactly, doubles with the double of the literal, texts by code points."""
    text = isinstance(literal, str)
    double = None if isinstance(literal, str) else float(literal)

    def of(row: Sequence[Any]) -> bool | None:
        value = _plain(row[at])
        if row[at] is not None and (type(row[at]) is str) != text:
            raise OtherValueError
        if value is None:
            return None
        return test(value, double if type(value) is float else literal)

    return of

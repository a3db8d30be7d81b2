"""Conditions of groups in NumPy: the part of Spark's SQL whose meaning can be had exactly; no other is taken.

Truth is three-valued, as SQL's. What Spark cannot compute is null, as
:func:`mcspark.predicates.computed` has it: a division by zero, a whole number too large for its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from mcspark.errors import ConfigurationError, ContractError
from mcspark.scorer import operations
from mcspark.scorer.columns import Column
from mcspark.scorer.operations import Of
from mcspark.scorer.values import (
    COMPARE,
    NULL,
    VALID,
    BoolArray,
    NotHereError,
    Value,
    as_float,
    booleans,
    both,
    compared,
    either,
    text,
)

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

ColumnOf = Callable[[str], Column]


class Condition:
    """A checked condition, parsed once.

    Parameters
    ----------
    name : str
        Of the group.
    where : str
        As :func:`mcspark.predicates.check_predicate` renders it.

    Raises
    ------
    ConfigurationError
        If it has a function or an operator that is not evaluated here.
    """

    def __init__(self, name: str, where: str) -> None:
        from sqlglot import parse_one  # noqa: PLC0415  (models without conditions need no parser)

        self._name, self._where = name, where
        self._tree = parse_one(where, dialect="spark")
        for node in self._tree.walk():
            if node.key not in _KNOWN and node.key not in _PARTS:
                raise ConfigurationError(
                    f"the condition of group {name!r}, {where}, uses {node.key.upper()}, which cannot be "
                    "evaluated without Spark; score with `mcspark score`"
                )

    def holds(self, column_of: ColumnOf) -> BoolArray:
        """Whether it is true, shape (N,), or (1,) where it reads no column; null is not true.

        Raises
        ------
        ContractError
            If it compares or computes what only Spark's own rules can.
        """
        try:
            with np.errstate(all="ignore"):
                (value,) = booleans(_evaluate(self._tree, column_of))
        except NotHereError as error:
            raise ContractError(
                f"the condition of group {self._name!r}, {self._where}, cannot be evaluated without Spark "
                f"({error}); score with `mcspark score`, or store columns in the types they are compared to"
            ) from error
        return value.data & value.valid


def _evaluate(node: Expr, column_of: ColumnOf) -> Value:
    if node.key == "column":
        return _column(column_of(node.name))
    return _KNOWN[node.key](node, lambda child: _evaluate(child, column_of))


def _column(column: Column) -> Value:
    if column.kind == "whole":
        return Value("whole", column.data, VALID if column.missing is None else ~column.missing, column.bits)
    if column.kind == "float":
        return Value("float", column.data, ~np.isnan(column.data), 64)
    if column.kind == "null":
        return replace(NULL, valid=np.zeros(len(column), dtype=bool))
    if column.kind == "text":
        return text(tuple(word or "" for word in column.values), column.data, column.data >= 0)
    if column.kind == "boolean":
        known = np.array([*(bool(value) for value in column.values), False])
        return Value("boolean", known[column.data], column.data >= 0)
    raise NotHereError(f"column {column.name!r} is {column.kind}")


def _literal(node: Expr, _: Of) -> Value:
    if node.is_string:
        return text((str(node.this),), np.zeros(1, dtype=np.int64), VALID)
    if re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+", node.this):
        return Value("float", np.array([float(node.this)]), VALID, 64)
    if not re.fullmatch(r"[0-9]+(\.[0-9]*)?|\.[0-9]+", node.this):
        raise NotHereError(f"the number {node.this}")
    number = Decimal(node.this)
    if "." in node.this:
        return Value("decimal", np.array([float(number)]), VALID, literal=number)
    if number >= 2**63:
        raise NotHereError(f"the number {node.this} is beyond 64 bits")
    return Value("whole", np.array([int(number)]), VALID, 32 if number < 2**31 else 64, number)


def _boolean(node: Expr, _: Of) -> Value:
    return Value("boolean", VALID if node.this else ~VALID, VALID)


def _not(node: Expr, of: Of) -> Value:
    (a,) = booleans(of(node.this))
    return replace(a, data=~a.data)


def _in(node: Expr, of: Of) -> Value:
    first, *options = (of(part) for part in (node.this, *node.expressions))
    values = _one_kind([first, *options])
    found = [compared("eq", values[0], option) for option in values[1:]]
    total = found[0]
    for one in found[1:]:
        total = either(total, one)
    return total


def _one_kind(values: list[Value]) -> list[Value]:
    """The values of a list as the one type that Spark finds for all of them."""
    kinds = {value.kind for value in values} - {"null"}
    if kinds == {"text", "whole"} and all(v.kind != "whole" or v.literal is not None for v in values):
        return [_spelt(v) if v.kind == "whole" else v for v in values]
    if "float" in kinds and kinds <= {"whole", "float", "decimal"}:
        return [v if v.kind == "null" else as_float(v) for v in values]
    if len(kinds) > 1 and kinds != {"whole", "decimal"}:
        raise NotHereError(f"{' and '.join(sorted(kinds))} in one list")
    return values


def _spelt(value: Value) -> Value:
    return text((str(value.literal),), np.zeros(1, dtype=np.int64), value.valid)


def _between(node: Expr, of: Of) -> Value:
    value = of(node.this)
    return both(compared("gte", value, of(node.args["low"])), compared("lte", value, of(node.args["high"])))


def _is(node: Expr, of: Of) -> Value:
    value, wanted = of(node.this), of(node.expression)
    if wanted.kind == "null":
        return Value("boolean", ~value.valid, VALID)
    (known,) = booleans(value)
    return Value("boolean", known.valid & (known.data == wanted.data), VALID)


def _is_nan(node: Expr, of: Of) -> Value:
    if of(node.this).kind not in ("whole", "float"):
        raise NotHereError("isnan of no number")
    return Value("boolean", ~VALID, VALID)  # NaN is a missing value here


_PARTS = {"column", "identifier", "datatype"}

_KNOWN: dict[str, Callable[[Any, Of], Value]] = {
    "paren": lambda node, of: of(node.this),
    "literal": _literal,
    "boolean": _boolean,
    "null": lambda *_: NULL,
    "and": lambda node, of: both(of(node.left), of(node.right)),
    "or": lambda node, of: either(of(node.left), of(node.right)),
    "not": _not,
    "in": _in,
    "between": _between,
    "is": _is,
    "isnan": _is_nan,
    "neg": operations.negated,
    "coalesce": operations.coalesced,
    **dict.fromkeys(("like", "escape"), operations.like),
    **dict.fromkeys(("startswith", "endswith", "contains"), operations.searched),
    **dict.fromkeys(("lower", "upper", "trim", "length", "substring", "left", "right"), operations.worded),
    **dict.fromkeys(("add", "sub", "mul", "div", "intdiv", "mod"), operations.arithmetic),
    **dict.fromkeys(("abs", "floor", "ceil"), operations.rounded),
    **dict.fromkeys(("if", "case"), operations.branched),
    **dict.fromkeys(("cast", "trycast"), operations.cast),
}


def _comparison(name: str) -> Callable[[Any, Of], Value]:
    return lambda node, of: compared(name, of(node.this), of(node.expression))


_KNOWN |= {name: _comparison(name) for name in (*COMPARE, "nullsafeeq", "nullsafeneq")}

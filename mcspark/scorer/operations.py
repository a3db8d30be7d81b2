"""What a condition computes: arithmetic, texts, casts and choices; null where Spark cannot compute it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mcspark.scorer.values import (
    NULL,
    TRUE,
    VALID,
    BoolArray,
    NotHereError,
    Value,
    as_float,
    as_whole,
    booleans,
    text,
)

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Of = Callable[["Expr"], Value]

_SMALL = 2**31
_NUMBERS = {"whole", "float", "decimal"}
_LETTERS = {"lower": str.lower, "upper": str.upper}


def arithmetic(node: Expr, of: Of) -> Value:
    """Of +, -, *, /, DIV and %."""
    a, b = of(node.this), of(node.args["expression"])
    kinds = {a.kind, b.kind}
    if "null" in kinds:
        return NULL
    if not kinds <= _NUMBERS or ("float" not in kinds and "decimal" in kinds):
        raise NotHereError(f"arithmetic with {' and '.join(sorted(kinds))}")
    valid = a.valid & b.valid
    if node.key in ("div", "intdiv", "mod"):
        return _divided(node.key, a, b, valid & (b.data != 0))
    functions: dict[str, Callable[..., Any]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
    function = functions[node.key]
    if "float" in kinds:
        return _computed(function(as_float(a).data, as_float(b).data), valid)
    return _bounded(function, a, b, valid)


def _bounded(function: Callable[..., Any], a: Value, b: Value, valid: BoolArray) -> Value:
    """Whole numbers, null where the result is too large for the wider of the two types."""
    bits = max(a.bits, b.bits)
    small = all(((v.data < _SMALL) & (v.data > -_SMALL)).all() for v in (a, b))
    data = function(a.data if small else a.data.astype(object), b.data)
    fits = np.asarray((data >= -(1 << (bits - 1))) & (data < 1 << (bits - 1)), dtype=bool)
    return Value("whole", np.where(fits, data, 0).astype(np.int64), valid & fits, bits)


def _divided(key: str, a: Value, b: Value, valid: BoolArray) -> Value:
    if key == "div":
        return _computed(as_float(a).data / as_float(b).data, valid)
    if "float" in (a.kind, b.kind):
        if key == "intdiv":
            raise NotHereError("DIV of floats")
        return _computed(np.fmod(as_float(a).data, as_float(b).data), valid)
    divisor = np.where(b.data == 0, 1, b.data)
    remainder = np.fmod(a.data, divisor)
    if key == "mod":
        return Value("whole", remainder, valid, max(a.bits, b.bits))
    return Value("whole", (a.data - remainder) // divisor, valid, 64)


def _computed(data: NDArray[Any], valid: BoolArray) -> Value:
    if (np.isnan(data) & valid).any():
        raise NotHereError("a result that is no number")  # Spark takes NaN for the largest
    return Value("float", data, valid, 64)


def negated(node: Expr, of: Of) -> Value:
    """Of a minus sign."""
    a = of(node.this)
    if a.literal is not None:
        return replace(a, data=-a.data, literal=-a.literal)
    if a.kind == "float":
        return replace(a, data=0.0 - a.data)
    if a.kind != "whole":
        raise NotHereError(f"minus {a.kind}")
    return _bounded(np.subtract, Value("whole", np.zeros(1, dtype=np.int64), VALID), a, a.valid)


def rounded(node: Expr, of: Of) -> Value:
    """Of abs, floor and ceil."""
    a = of(node.this)
    if any(v for k, v in node.args.items() if k != "this") or a.kind not in ("whole", "float"):
        raise NotHereError(f"{node.key} of {a.kind}")
    if node.key == "abs":
        if a.kind == "whole" and (a.data == -(1 << (a.bits - 1))).any():
            raise NotHereError("abs of the smallest number")
        return replace(a, data=np.abs(a.data), literal=None)
    if a.kind == "whole":
        return replace(a, bits=64, literal=None)
    data = (np.floor if node.key == "floor" else np.ceil)(a.data)
    inside = np.where(np.abs(data) < 2.0**63, data, 0.0).astype(np.int64)
    bounded = np.where(data >= 2.0**63, 2**63 - 1, np.where(data < -(2.0**63), -(2**63), inside))
    return Value("whole", bounded, a.valid, 64)


def cast(node: Expr, of: Of) -> Value:
    """Of CAST to whole numbers, doubles and texts."""
    a, kind = of(node.this), node.args["to"].this.value
    bits = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}.get(kind)
    found: Value | None = None
    if (
        a.kind == "null"
        or (kind == "BOOLEAN" and a.kind == "boolean")
        or (kind == "TEXT" and a.kind == "text")
    ):
        found = a
    elif bits:
        found = _cast_to_whole(a, bits)
    elif kind == "DOUBLE" and a.kind in ("whole", "float"):
        found = as_float(a)
    elif kind == "TEXT" and a.kind == "whole":
        distinct, place = np.unique(a.data, return_inverse=True)
        found = text(tuple(map(str, distinct.tolist())), place.reshape(-1), a.valid)
    if found is None:
        raise NotHereError(f"a cast of {a.kind} to {kind}")
    return found


def _cast_to_whole(a: Value, bits: int) -> Value | None:
    if a.kind == "text":
        return as_whole(a, bits)
    if a.kind == "whole":
        fits = (a.data >= -(1 << (bits - 1))) & (a.data <= (1 << (bits - 1)) - 1)
        return Value("whole", a.data, a.valid & fits, bits)
    if a.kind == "float":
        whole = np.trunc(a.data)
        if (a.valid & (np.abs(whole) == 2.0 ** (bits - 1))).any():
            raise NotHereError("a cast of the largest number")
        fits = np.abs(whole) < 2.0 ** (bits - 1)
        return Value("whole", np.where(fits, whole, 0).astype(np.int64), a.valid & fits, bits)
    return None


def worded(node: Expr, of: Of) -> Value:
    """Of lower, upper, trim, length, substring, left and right."""
    value = of(node.this)
    if node.key in _LETTERS:
        return _of_text(value, lambda word: _LETTERS[node.key](_ascii(word)))
    if node.key == "trim":
        if any(v for k, v in node.args.items() if k != "this"):
            raise NotHereError("trim of anything but spaces")
        return _of_text(value, lambda word: word.strip(" "))
    if node.key == "length":
        return _of_text(value, len)
    first = _count(of, node.args.get("start"), 1) if node.key == "substring" else 1
    count = _count(of, node.args.get("length") or node.args.get("expression"), 0)
    if node.key == "right":
        return _of_text(value, lambda word: word[-count:] if count else "")
    return _of_text(value, lambda word: word[first - 1 : first - 1 + count])


def _ascii(word: str) -> str:
    if not word.isascii():
        raise NotHereError(f"capitals of {word!r}")
    return word


def _count(of: Of, node: Expr | None, least: int) -> int:
    value = of(node) if node is not None else NULL
    if value.literal is None or value.kind != "whole" or value.literal < least:
        raise NotHereError("a place in a text that is no positive number")
    return int(value.literal)


def _of_text(value: Value, function: Callable[[str], Any], kind: str = "") -> Value:
    """A function of each distinct text."""
    if value.kind == "null":
        return value
    if value.kind != "text":
        raise NotHereError(f"{value.kind} where a text is needed")
    found = [function(word) for word in value.words]
    if (found and isinstance(found[0], str)) or not (found or kind):
        return replace(value, words=tuple(found))
    kind = kind or "whole"
    known = np.array([*found, 0], dtype=bool if kind == "boolean" else np.int64)
    return Value(kind, known[value.data], value.valid)


def searched(node: Expr, of: Of) -> Value:
    """Of startswith, endswith and contains."""
    other = of(node.args["expression"])
    if other.kind != "text" or len(other.data) != 1:
        raise NotHereError(f"{node.key} of two columns")
    wanted = other.words[0]
    found: Callable[[str], bool] = {
        "startswith": lambda word: word.startswith(wanted),
        "endswith": lambda word: word.endswith(wanted),
        "contains": lambda word: wanted in word,
    }[node.key]
    return _of_text(of(node.this), found, "boolean")


def like(node: Expr, of: Of) -> Value:
    """Of LIKE, with ESCAPE or without."""
    escape = "\\"
    if node.key == "escape":
        escape, node = node.args["expression"].name, node.this
    pattern = node.args["expression"]
    if pattern.key != "literal" or not pattern.is_string or len(escape) != 1:
        raise NotHereError("LIKE with anything but a text")
    regex = re.compile(_regex(pattern.this, escape), re.DOTALL)
    return _of_text(of(node.this), lambda word: regex.fullmatch(word) is not None, "boolean")


def _regex(pattern: str, escape: str) -> str:
    parts, letters = [], iter(pattern)
    for letter in letters:
        if letter == escape:
            following = next(letters, None)
            if following is None or following not in ("%", "_", escape):
                raise NotHereError(f"the pattern {pattern!r}")
            parts.append(re.escape(following))
        else:
            parts.append({"%": ".*", "_": "."}.get(letter, re.escape(letter)))
    return "".join(parts)


def coalesced(node: Expr, of: Of) -> Value:
    """Of coalesce."""
    return _chosen([(None, of(child)) for child in (node.this, *node.expressions)])


def branched(node: Expr, of: Of) -> Value:
    """Of IF and CASE WHEN."""
    if node.key == "case" and node.this is not None:
        raise NotHereError("CASE with an operand")
    branches = node.args["ifs"] if node.key == "case" else [node]
    rest = node.args.get("default" if node.key == "case" else "false")
    chosen = [(booleans(of(b.this))[0], of(b.args["true"])) for b in branches]
    return _chosen([*chosen, (TRUE, of(rest) if rest is not None else NULL)])


def _chosen(branches: Sequence[tuple[Value | None, Value]]) -> Value:
    """The first value whose condition holds, or, without conditions, that is not null."""
    kinds = {value.kind for _, value in branches} - {"null"}
    if "float" in kinds and kinds <= _NUMBERS:
        branches = [(c, v if v.kind == "null" else as_float(v)) for c, v in branches]
        kinds = {"float"}
    if len(kinds) > 1 or "decimal" in kinds:
        raise NotHereError(f"a choice among {' and '.join(sorted(kinds))}")
    parts = [value for pair in branches for value in pair if value is not None]
    shape = np.broadcast_shapes(*(part.data.shape for part in parts), *(part.valid.shape for part in parts))
    data, valid, undecided = np.zeros(shape), np.zeros(shape, dtype=bool), np.ones(shape, dtype=bool)
    words: tuple[str, ...] = ()
    for condition, value in branches:
        here = undecided & (value.valid if condition is None else condition.data & condition.valid)
        if value.kind != "null":
            data = np.where(
                here, value.data + len(words) if value.words else value.data, data.astype(value.data.dtype)
            )
            valid = np.where(here, value.valid, valid)
            words += value.words
        undecided = undecided & ~here
    (kind,) = kinds or {"null"}
    return Value(kind, data, valid, max(value.bits for _, value in branches), words=words)

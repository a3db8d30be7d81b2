"""Groups and errors of a pair, again: plain Python over its rows, brute force over what was written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from judged_rows import Key, by_key
from shapes import Attributes, Pair, Values


@dataclass(frozen=True)
class Groups:
    """Groups by name, each a boolean for every row.

    ``close`` where a share is all but at the limit, ``twice`` where two groups have one name.
    """

    members: dict[str, np.ndarray]
    close: bool
    twice: bool = False


def groups_of(pair: Pair, keys: list[Key], learns: np.ndarray, weight: np.ndarray) -> Groups:
    """The groups of the rows with these keys, chosen on the labelled ones (``learns``).

    Parameters
    ----------
    pair : Pair
    keys : list of tuple
    learns : ndarray of bool
    weight : ndarray
    """
    section = pair.config["groups"]
    shares = [Fraction(float(w)) for w in np.where(learns, weight, 0.0)]
    total, limit = sum(shares), Fraction(section["min_share"])
    close = False

    def share(member: np.ndarray) -> Fraction:
        return sum((shares[i] for i in np.flatnonzero(member)), Fraction(0)) / total

    def large(member: np.ndarray) -> bool:
        nonlocal close
        found = share(member)
        close |= abs(found - limit) < Fraction(1, 10**9) and not (found == limit == 0)
        return found > limit

    members: dict[str, tuple[int, np.ndarray]] = {}
    family, twice = 0, False
    for cut in section["columns"]:
        family += 1
        values = _values(pair, keys, cut["column"])
        category, name = _category(pair, cut)
        codes = [None if v is None else category(v) for v in values]
        for code in {c for c in codes if c is not None}:
            member = np.array([c == code for c in codes])
            if (member & learns).any() and large(member):
                twice |= name(code) in members
                members[name(code)] = (family, member)
    for condition in pair.conditions:
        family += 1
        rows = _rows(pair, keys)
        lacking = _lacks(pair, keys, condition.columns)
        holds = [bool(condition.holds(row)) and not gone for row, gone in zip(rows, lacking, strict=True)]
        twice |= condition.name in members
        members[condition.name] = (family, np.array(holds, dtype=bool))
    found = {name: member for name, (_, member) in members.items()}
    if section["intersections"] == 2:
        for a, (fa, one) in members.items():
            for b, (fb, other) in members.items():
                if fa < fb:
                    joint = share(one & other)
                    smaller = min(share(one), share(other))
                    close |= 0 < abs(joint - smaller) < Fraction(1, 10**9)
                    if joint < smaller and large(one & other):
                        twice |= f"{a} & {b}" in found
                        found[f"{a} & {b}"] = one & other
    return Groups(found, close, twice)


def _table_with(pair: Pair, column: str) -> Attributes | None:
    return next((t for t in pair.attributes if column in t.types and column not in pair.key), None)


def _rows(pair: Pair, keys: list[Key]) -> list[Values]:
    tables = [by_key(table, pair.key) for table in pair.attributes]
    return [
        {n: _plain(v) for t in tables for n, v in t.get(key, {}).items() if n not in pair.key} for key in keys
    ]


def _lacks(pair: Pair, keys: list[Key], columns: tuple[str, ...]) -> list[bool]:
    tables = [_table_with(pair, column) for column in columns]
    known = [by_key(t, pair.key) for t in tables if t is not None]
    return [any(key not in rows for rows in known) for key in keys]


def _values(pair: Pair, keys: list[Key], column: str) -> list[Any]:
    table = _table_with(pair, column)
    assert table is not None
    rows = by_key(table, pair.key)
    return [_plain(rows[key][column]) if key in rows else None for key in keys]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _exact(value: Any) -> Decimal | float:
    """A number by its shortest decimal; infinite ones as they are."""
    if isinstance(value, float):
        return value if math.isinf(value) else Decimal(repr(value))
    return Decimal(value)


def _category(pair: Pair, cut: Mapping[str, Any]) -> tuple[Callable[[Any], Any], Callable[[Any], str]]:
    column = cut["column"]
    if "bins" in cut:
        edges = [Decimal(repr(edge)) for edge in cut["bins"]]

        def bin_of(value: Any) -> int | None:
            number = _exact(value)
            inside = [i for i in range(len(edges) - 1) if edges[i] <= number < edges[i + 1]]
            return inside[0] if inside else None

        def short(edge: float) -> str:
            return str(int(edge)) if edge.is_integer() else repr(edge)

        return bin_of, lambda i: f"{column}=[{short(cut['bins'][i])},{short(cut['bins'][i + 1])})"
    if "divide_by" in cut:
        by = cut["divide_by"]
        shown = str(int(by)) if by.is_integer() else repr(by)

        def quotient(value: Any) -> int | None:
            number = _exact(value)
            return (
                None
                if isinstance(number, float)
                else math.floor(Fraction(number) / Fraction(Decimal(repr(by))))
            )

        return quotient, lambda i: f"{column}/{shown}={i}"
    kind = pair_type(pair, column)
    if pa.types.is_boolean(kind):
        return bool, lambda v: f"{column}={'true' if v else 'false'}"
    if pa.types.is_floating(kind):
        # 0.0 and -0.0 are one number.
        return lambda v: v + 0.0, lambda v: f"{column}={'Infinity' if v == math.inf else v}"
    if pa.types.is_decimal(kind):
        return lambda v: pa.scalar(v, kind).as_py(), lambda v: f"{column}={float(v)}"
    return lambda v: pa.scalar(v, kind).as_py(), lambda v: f"{column}={v}"


def pair_type(pair: Pair, column: str) -> pa.DataType:
    """Type of an attribute column."""
    table = _table_with(pair, column)
    assert table is not None
    return table.types[column]


def measured(
    score: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    members: Mapping[str, np.ndarray],
    m: int,
    least: int,
) -> dict[str, float | None]:
    """MC error, MA error and loss of these rows on the grid of m levels, row by row.

    Parameters
    ----------
    score, label, weight : ndarray
    members : mapping of str to ndarray of bool
    m : int
    least : int
        Smaller groups do not count.
    """
    total = weight.sum()
    if not total > 0:
        return {"mc_error": None, "ma_error": None, "loss": None, "score_loss": None}
    edges = np.arange(m + 1) / m
    level = np.minimum(np.searchsorted(edges, score, side="right") - 1, m - 1)
    rounded = (2 * level + 1) / (2 * m)
    mc, ma = [], []
    for member in members.values():
        if member.sum() < least or not weight[member].sum() > 0:
            continue
        gaps = [
            abs(float(np.sum((weight * (rounded - label))[member & (level == k)]))) for k in np.unique(level)
        ]
        mc.append(math.fsum(gaps) / total)
        ma.append(abs(float(np.sum((weight * (rounded - label))[member]))) / total)
    return {
        "mc_error": max(mc, default=None), "ma_error": max(ma, default=None),
        "loss": float(np.sum(weight * (rounded - label) ** 2) / total),
        "score_loss": float(np.sum(weight * (score - label) ** 2) / total),
    }  # fmt: skip


def close(one: float | None, other: float | None) -> bool:
    """Equal to 1e-9, or both nothing."""
    return one is other is None or (one is not None and other is not None and abs(one - other) <= 1e-9)


def keys_of(table: pd.DataFrame, key: list[str]) -> list[Key]:
    """The keys of a table that pandas has read."""
    return [
        tuple(None if pd.isna(v) else v for v in row)
        for row in table[key].astype(object).itertuples(index=False, name=None)
    ]

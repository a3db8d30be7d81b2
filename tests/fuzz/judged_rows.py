"""What the contract says about every scored row of a pair: plain Python over its rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from shapes import Attributes, Pair, Values

NOISE = 1e-9
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Judged:
    """The rows of a pair, judged one by one.

    Parameters
    ----------
    clean : list of dict
        Rows without a fault of their own; a key may be there twice.
    accepted : list of dict
        Those of them that no table with ``on_unmatched: reject`` lacks.
    rejected : list of (key, reasons)
    faults : list of (row, reasons)
        Every row with its own faults, before the join.
    lacking : list of int
        Clean rows that each attribute table lacks.
    """

    clean: list[Values] = field(default_factory=list)
    accepted: list[Values] = field(default_factory=list)
    rejected: list[tuple[Key, tuple[str, ...]]] = field(default_factory=list)
    faults: list[tuple[Values, list[str]]] = field(default_factory=list)
    lacking: list[int] = field(default_factory=list)


def judged(pair: Pair) -> Judged:
    """What the contract says about every row; the columns must be there, and of the types asked for."""
    rows = [(row, _faults(pair, row)) for row in pair.scored]
    if "dedupe" in pair.config["scored"]:
        _supersede(rows, pair.key, pair.config["scored"]["dedupe"]["latest_by"])
    tables = [by_key(table, pair.key) for table in pair.attributes]
    found = Judged(faults=rows, lacking=[0] * len(tables))
    for row, wrong in rows:
        key, reasons = key_of(row, pair.key), list(wrong)
        if not wrong:
            found.clean.append(row)
            lacks = [key not in known for known in tables]
            for i, lack in enumerate(lacks):
                found.lacking[i] += lack
            if any(
                lack and t.on_unmatched == "reject" for lack, t in zip(lacks, pair.attributes, strict=True)
            ):
                reasons.append("unmatched")
        if reasons:
            found.rejected.append((key, tuple(sorted(reasons))))
        else:
            found.accepted.append(row)
    return found


def key_of(row: Values, key: list[str]) -> Key:
    """The key of a row."""
    return tuple(row[k] for k in key)


def by_key(table: Attributes, key: list[str]) -> dict[Key, Values]:
    """The rows of an attribute table by their key."""
    return {tuple(row[k] for k in key): row for row in table.rows}


def stored(value: Any, kind: pa.DataType) -> float | None:
    """The number that a column of this type keeps of a value."""
    return None if value is None else float(pa.scalar(value, kind).as_py())


def _faults(pair: Pair, row: Values) -> list[str]:
    scored, found = pair.config["scored"], []
    if any(row[k] is None for k in pair.key):
        found.append("null_key")
    for what in ("score", "label", "weight"):
        if what not in scored:
            continue
        value = stored(row[scored[what]], pair.types[scored[what]])
        if value is None:
            if what != "label":
                found.append(f"{what}_null")
        elif math.isnan(value):
            found.append(f"{what}_nan")
        elif math.isinf(value):
            found.append(f"{what}_infinite")
        elif what != "weight" and not -NOISE <= value <= 1 + NOISE:
            found.append(f"{what}_out_of_range")
    return found


def _supersede(rows: list[tuple[Values, list[str]]], key: list[str], by: str) -> None:
    """Of the rows of one key all but the latest are superseded; a null is older than everything."""
    latest: dict[Key, Any] = {}
    keyed = [(key_of(row, key), row[by], wrong) for row, wrong in rows if "null_key" not in wrong]
    for one, at, _ in keyed:
        known = latest.get(one)
        latest[one] = at if known is None else known if at is None else max(known, at)
    for one, at, wrong in keyed:
        if at != latest[one]:
            wrong.append("superseded")

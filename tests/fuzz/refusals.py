"""Which refusals a pair calls for, by the documented rules: exit code and words of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from judged_rows import Judged, judged, key_of, stored
from oracle import groups_of
from shapes import Pair, Values

ALLOWED_ROWS, ALLOWED_SHARE = 20, 0.01
EFFECTIVE_ROWS = 20
RANGE = 1e250
LEAST_SHARE = 1e-6
OUTPUT_ADDS = {"calibrated_score", "split"}
OF_REJECTED = {"reasons", "source"}


@dataclass(frozen=True)
class Refusal:
    """A run that ends with this code and a message that holds these words (a pattern).

    It is not ``sure`` where what was learned decides, or a number all but at its limit.
    """

    code: int
    words: str
    sure: bool = True


def refusals(pair: Pair) -> list[Refusal]:
    """All refusals that a pair calls for; a run meets one of them first, and which one is not said."""
    found = [*_of_names(pair), *_of_columns(pair)]
    if any(refusal.sure for refusal in found):
        return found  # the rows cannot be judged
    rows = judged(pair)
    found += [*_of_weights(pair, rows), *_of_rows(pair, rows), *_of_keys(pair, rows), *_of_join(pair, rows)]
    if any(refusal.sure for refusal in found) or not rows.accepted:
        return found
    return [*found, *_of_learning(pair, rows)]


def _of_names(pair: Pair) -> Iterator[Refusal]:
    """Names in the configuration that mean two things at once."""
    scored, groups = pair.config["scored"], pair.config["groups"]
    roles = [scored[what].lower() for what in ("score", "label", "weight") if what in scored]
    key = [name.lower() for name in pair.key]
    cuts = [cut["column"].lower() for cut in groups["columns"]]
    titles = [p["name"].lower() for p in groups["predicates"]]
    if len(set(key)) < len(key) or len(set(cuts)) < len(cuts):
        yield Refusal(2, "twice")
    if len({*key, *roles}) < len(key) + len(roles):
        yield Refusal(2, "which is already")
    if OUTPUT_ADDS & {*key, *roles}:
        yield Refusal(2, "a column that the output adds")
    if OF_REJECTED & set(key):
        yield Refusal(2, "names a column of the rejected rows")
    if "ds" in (*key, *roles) and "partition" in pair.config["output"]:
        yield Refusal(2, "partition by another column")
    if scored["label"].lower() in _group_columns(pair, folded=True):
        yield Refusal(2, "reads the label")
    if set(titles) & set(cuts):
        yield Refusal(2, "like a group column")
    if len(set(titles)) < len(titles):
        yield Refusal(2, "two groups named")
    if not cuts and not titles:
        yield Refusal(2, "needs groups")


def _group_columns(pair: Pair, *, folded: bool = False) -> set[str]:
    names = {cut["column"] for cut in pair.config["groups"]["columns"]}
    names |= {name for condition in pair.conditions for name in condition.columns}
    return {name.lower() for name in names} if folded else names


def _of_columns(pair: Pair) -> Iterator[Refusal]:
    """Columns that are there twice, or of types that are not what the configuration takes them for."""
    scored, groups = pair.config["scored"], _group_columns(pair)
    numbers = [scored[what] for what in ("score", "label", "weight") if what in scored]
    latest = scored["dedupe"]["latest_by"] if "dedupe" in scored else None
    split = pair.config["split"].get("column")
    used = {*pair.key, *numbers, *(name for name in (latest, split) if name)}
    tables = [pair.types, *(table.types for table in pair.attributes)]
    for types, needed in zip(tables, [used, *[groups] * len(pair.attributes)], strict=True):
        alike = Counter(name.lower() for name in types)
        twins = {name for name in types if alike[name.lower()] > 1}
        if twins:
            yield Refusal(3, "differ only in case|capitals", sure=bool(twins & needed))
    for name in {*used, *groups}:
        if name.startswith("__"):
            yield Refusal(3, "kept for working columns")
    for name in groups:
        if sum(name.lower() in map(str.lower, types) for types in tables) > 1:
            yield Refusal(3, "in more than one of the tables")
    if not all(_is_number(pair.types[name]) for name in numbers):
        yield Refusal(3, "not numeric")
    if latest and pa.types.is_map(pair.types[latest]):
        yield Refusal(3, "not ordered")
    yield from _of_types(pair)
    if any(condition.fails for condition in pair.conditions):
        yield Refusal(3, "does not fit its columns", sure=False)


def _of_types(pair: Pair) -> Iterator[Refusal]:
    for table in pair.attributes:
        if any(_comparable(table.types[k]) != _comparable(pair.types[k]) for k in pair.key):
            yield Refusal(3, "nothing is cast")
        for cut in pair.config["groups"]["columns"]:
            kind = table.types.get(cut["column"])
            if kind is not None and ("bins" in cut or "divide_by" in cut) and not _is_number(kind):
                yield Refusal(3, "has bins or divide_by")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _comparable(kind: pa.DataType) -> str:
    return "integer" if pa.types.is_integer(kind) else str(kind)


def _of_weights(pair: Pair, rows: Judged) -> Iterator[Refusal]:
    name = pair.config["scored"].get("weight")
    if name is None:
        return
    given = (stored(row[name], pair.types[name]) for row in pair.scored)
    if any(weight is not None and weight < 0 for weight in given):
        yield Refusal(3, f"negative {re.escape(name)}")
        return
    labelled = _labelled(pair, rows.clean)
    counted = [Fraction(w) for w in _weights(pair, labelled or rows.clean) if w > 0]
    if rows.clean and not counted:
        yield Refusal(3, "so nothing counts")
    if not labelled or not counted:
        return
    total, squares = sum(counted), sum(w * w for w in counted)
    effective = total**2 / squares
    if len(counted) > 2 * EFFECTIVE_ROWS and effective < EFFECTIVE_ROWS * (1 + Fraction(1, 10**6)):
        sure = effective < EFFECTIVE_ROWS * (1 - Fraction(1, 10**6))
        yield Refusal(3, "labelled rows count like", sure=sure)
    if not all(1 / Fraction(RANGE) < size < Fraction(RANGE) for size in (total, squares)):
        yield Refusal(3, "which is out of range")


def _of_rows(pair: Pair, rows: Judged) -> Iterator[Refusal]:
    """Too many rejected rows, before the join and after it."""
    yield from _too_many(pair, rows, len(rows.clean))
    if len(rows.accepted) < len(rows.clean):
        yield from _too_many(pair, rows, len(rows.accepted))


def _too_many(pair: Pair, rows: Judged, left: int) -> Iterator[Refusal]:
    allowed = pair.config.get("max_rejected_share")
    if not left and not pair.config.get("allow_empty"):
        yield Refusal(3, "rows are rejected")
    label = pair.config["scored"]["label"]
    given = [(stored(row[label], pair.types[label]), wrong) for row, wrong in rows.faults]
    if left:
        out = [value for value, wrong in given if value is not None and "label_out_of_range" in wrong]
        codes = Counter(value for value in out if value == int(value) and abs(value) <= 1000)
        kept = {min(max(value, 0.0), 1.0) for value, wrong in given if value is not None and not wrong}
        if any(n > ALLOWED_ROWS for n in codes.values()) or (codes and len(kept) == 1):
            yield Refusal(3, "every row with the label")
    if not left and allowed is None:
        return
    superseded = sum("superseded" in wrong for _, wrong in rows.faults)
    bad = sum(any(reason.startswith("label_") for reason in wrong) for _, wrong in given)
    labels = sum(value is not None for value, _ in given)
    judged_ones = len(rows.faults) - superseded  # what is superseded does not count
    for rejected, of in ((judged_ones - left, judged_ones), (bad, labels)):
        few = allowed is None and rejected <= ALLOWED_ROWS
        if of and not few and rejected / of > (ALLOWED_SHARE if allowed is None else allowed):
            yield Refusal(3, "raise max_rejected_share")


def _of_keys(pair: Pair, rows: Judged) -> Iterator[Refusal]:
    for table in (rows.clean, *(table.rows for table in pair.attributes)):
        keys = [key for row in table if None not in (key := key_of(row, pair.key))]
        if len(set(keys)) < len(keys):
            yield Refusal(3, r"key\(s\) .* are on")
    column = pair.config["split"].get("column")
    if column and any(row[column] not in ("fit", "test") for row in _labelled(pair, rows.clean)):
        yield Refusal(3, "neither 'fit' nor 'test'")


def _of_join(pair: Pair, rows: Judged) -> Iterator[Refusal]:
    """Rows that a table lacks: one is too many, or all of more than a few."""
    judging = {"unknown"} if pair.config.get("allow_empty") else {"unknown", "reject"}
    for table, lacking in zip(pair.attributes, rows.lacking, strict=True):
        if table.on_unmatched == "fail" and lacking:
            yield Refusal(3, "no attributes for")
        none = lacking == len(rows.clean) > ALLOWED_ROWS
        if none and table.on_unmatched in judging:
            yield Refusal(3, "no attributes for any")


def _of_learning(pair: Pair, rows: Judged) -> Iterator[Refusal]:
    labelled = _labelled(pair, rows.accepted)
    if not labelled:
        yield Refusal(3, "no row has a label")
        return
    weights = _weights(pair, labelled)
    if not any(weights):
        yield Refusal(3, "no labelled row has any weight")
        return
    if min(w for w in weights if w) < LEAST_SHARE * sum(weights):
        yield Refusal(3, "one part of the split", sure=False)
    keys = [key_of(row, pair.key) for row in labelled]
    groups = groups_of(pair, keys, np.ones(len(keys), dtype=bool), np.array(weights))
    if groups.twice:
        yield Refusal(3, "two groups have the name", sure=not groups.close)
    if not groups.members or (groups.close and not pair.conditions):
        yield Refusal(3, "no group is left", sure=not groups.close)
    yield from _of_gate(pair, labelled, weights, list(groups.members.values()))


def _of_gate(
    pair: Pair, labelled: Sequence[Values], weights: Sequence[float], members: Sequence[np.ndarray]
) -> Iterator[Refusal]:
    """What was learned decides; but where nothing can be measured, no limit is met."""
    gate: dict[str, Any] = pair.config.get("gate", {})
    changes = pair.config["calibrator"]["method"] != "none"
    if gate.get("max_mc_error") is None and not (gate.get("must_improve", True) and changes):
        return
    column, least = pair.config["split"].get("column"), pair.config["evaluation"]["min_group_rows"]
    held = np.array([column is None or row[column] == "test" for row in labelled])
    weight = np.array(weights)
    measurable = any((m & held).sum() >= least and weight[m & held].sum() > 0 for m in members)
    yield Refusal(4, "the quality gate is not met", sure=not measurable and "max_mc_error" in gate)


def _labelled(pair: Pair, rows: Sequence[Values]) -> list[Values]:
    return [row for row in rows if row[pair.config["scored"]["label"]] is not None]


def _weights(pair: Pair, rows: Sequence[Values]) -> list[float]:
    name = pair.config["scored"].get("weight")
    return [1.0 if name is None else stored(row[name], pair.types[name]) or 0.0 for row in rows]

"""Attribute tables, and groups over their columns: cuts and conditions."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
from draws import Draws
from shapes import Attributes, Condition, Values


class AttributeTables(Draws):
    """Makes attribute tables, and what a configuration says about their groups."""

    def table(self, keys: list[Values], key: list[str], key_types: Mapping[str, pa.DataType]) -> Attributes:
        rng = self.rng
        policy = rng.choice(["unknown", "unknown", "unknown", "reject"])
        whole = rng.random() < 0.6
        if self.chance(0.02, "fail on unmatched"):
            policy, whole = "fail", False
        rows = [dict(k) for k in keys if whole or rng.random() < 0.9]
        if self.chance(0.03, "an attribute key twice"):
            rows.append(dict(rows[-1]))
        types: dict[str, pa.DataType] = dict(key_types)
        if self.chance(0.02, "other types of the key"):
            types = {k: pa.string() for k in types}
            for row in rows:
                row.update({k: None if row[k] is None else str(row[k]) for k in key})
        for _ in range(rng.choice([1, 2, 2, 3])):
            name = self.name()
            if name in types:
                continue
            kind, draw = self.kind()
            for row in rows:
                row[name] = None if rng.random() < 0.1 else draw()
            types[name] = kind
        rng.shuffle(rows)
        return Attributes(rows, types, policy)

    def kind(self) -> tuple[pa.DataType, Callable[[], Any]]:
        rng = self.rng
        tenths = [i / 10 for i in range(10)]
        quarters = [i / 4 for i in range(8)]
        kinds: list[tuple[pa.DataType, Callable[[], Any]]] = [
            (pa.int64(), lambda: rng.randint(0, 4)),
            (pa.int32(), lambda: rng.randint(-50, 90)),
            (pa.int8(), lambda: rng.randint(-3, 3)),
            (pa.float64(), lambda: rng.choice(tenths)),
            (pa.float64(), lambda: rng.choice([*quarters, math.nan, -0.0, math.inf])),
            (pa.float32(), lambda: rng.choice(tenths)),
            (pa.decimal128(6, 2), lambda: Decimal(rng.randint(-100, 400)) / 100),
            (
                pa.string(),
                lambda: rng.choice(["a", "b", "A", "", " a", "c'd", 'e"f', "é", "null", "1", "01"]),
            ),
            (pa.string(), lambda: rng.choice(["north", "south"])),
            (pa.bool_(), lambda: rng.random() < 0.3),
            (pa.date32(), lambda: dt.date(2026, 1, rng.randint(1, 4))),
            (pa.int64(), lambda: None),
            (pa.string(), lambda: None),
        ]
        return rng.choice(kinds)

    def groups(
        self, tables: list[Attributes], key: list[str]
    ) -> tuple[list[dict[str, Any]], list[Condition]]:
        cuts: list[dict[str, Any]] = []
        conditions: list[Condition] = []
        for table in tables:
            for name, kind in table.types.items():
                if name in key:
                    continue
                if self.chance(0.85):
                    cuts.append({"column": name, **self.cut(kind)})
                if self.chance(0.4):
                    conditions.append(self.condition(name, kind, len(conditions)))
        if not cuts and not conditions:
            name = (
                next(n for n in tables[0].types if n not in key) if len(tables[0].types) > len(key) else None
            )
            if name is None:
                self.odd.append("no groups")
            else:
                cuts.append({"column": name})
        return cuts, conditions

    def cut(self, kind: pa.DataType) -> dict[str, Any]:
        rng = self.rng
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        choice = rng.random()
        if not number and not self.chance(0.02, "bins of what is no number"):
            return {}
        if choice < 0.4:
            return {}
        if choice < 0.7:
            edges = sorted(rng.sample([-10.0, 0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 2.0, 3.0, 18.0, 65.0], 4))
            return {"bins": edges}
        return {"divide_by": rng.choice([0.1, 0.25, 0.5, 2.0, 3.0, 10.0])}

    def condition(self, name: str, kind: pa.DataType, i: int) -> Condition:
        rng, sql = self.rng, "`" + name.replace("`", "``") + "`"
        title = rng.choice(["p", "old women", "x=1", "é", "a & b", "<b>", "p'"]) + str(i)
        if self.chance(0.02, "a condition that fails"):
            wrong = rng.choice(
                [
                    f"1 / length(trim(cast({sql} as string))) > 1",
                    f"cast({sql} as int) > 2",
                    f"cast(cast({sql} as string) as date) = '2026-01-01'",
                    f"cast({sql} as tinyint) > 300",
                ]
            )
            return Condition(title, wrong, lambda _: None, (name,), fails=True)

        def tests(op: Callable[[Any], bool | None]) -> Callable[[Values], bool | None]:
            return lambda row: None if row.get(name) is None else op(row[name])

        anything: list[tuple[str, Callable[[Values], bool | None]]] = [
            (f"{sql} IS NULL", lambda row: row.get(name) is None),
            (f"{sql} IS NOT NULL", lambda row: row.get(name) is not None),
            ("true", lambda _: True),
        ]
        if pa.types.is_boolean(kind):
            anything += [(f"{sql} = true", tests(bool)), (f"NOT ({sql} = true)", tests(lambda v: not v))]
        elif pa.types.is_string(kind):
            anything += [
                (f"{sql} IN ('a', 'north', '01')", tests(lambda v: v in ("a", "north", "01"))),
                (f"length({sql}) > 1", tests(lambda v: len(v) > 1)),
                (f"{sql} LIKE 's%'", tests(lambda v: v.startswith("s"))),
                (f"coalesce({sql}, 'none') = 'none'", lambda row: row.get(name) in (None, "none")),
            ]
        elif pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            anything += [
                (f"{sql} >= 2", tests(lambda v: v >= 2)),
                (f"{sql} BETWEEN 1 AND 60", tests(lambda v: 1 <= v <= 60)),
                (f"{sql} > 1 OR {sql} IS NULL", lambda row: row.get(name) is None or row[name] > 1),
            ]
        elif pa.types.is_floating(kind):
            anything += [(f"{sql} >= 0.5", tests(lambda v: v >= 0.5))]
        where, holds = rng.choice(anything)
        return Condition(title, where, holds, () if where == "true" else (name,))

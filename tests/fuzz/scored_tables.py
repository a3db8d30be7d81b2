"""Scored tables: keys, scores, labels, weights, a split, repeated rows."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
from draws import Draws
from shapes import Values


class ScoredTables(Draws):
    """Makes the columns of a scored table in its rows, and returns their types."""

    def keys(self, key: list[str], types: Mapping[str, pa.DataType], n: int) -> list[Values]:
        rng = self.rng
        found: dict[tuple[Any, ...], None] = {}
        while len(found) < n:
            one = []
            for k in key:
                i = rng.randrange(4 * n)
                if pa.types.is_string(types[k]):
                    one.append(rng.choice([f"{i:06d}", f"{i}", f"k{i}", f" {i}"]))
                elif pa.types.is_date(types[k]):
                    one.append(dt.date(2020, 1, 1) + dt.timedelta(days=i))
                else:
                    one.append(i - 5)
            found[tuple(one)] = None
        rows = [dict(zip(key, one, strict=True)) for one in found]
        if self.chance(0.2):
            for row in rows[: rng.randint(1, 4)]:
                row[rng.choice(key)] = None
        return rows

    def scores(self, rows: list[Values], name: str) -> pa.DataType:
        rng = self.rng
        how = rng.choice(["any", "any", "any", "edges", "few", "one", "ends"])
        draw: Callable[[], float] = {
            "any": rng.random, "edges": lambda: rng.randrange(31) / 30,
            "few": lambda: rng.choice([0.1, 0.3, 0.7]),
            "one": lambda: 0.25, "ends": lambda: rng.choice([0.0, 1.0, -0.0, 5e-324, math.nextafter(1, 0)]),
        }[how]  # fmt: skip
        kind = rng.choice([pa.float64()] * 4 + [pa.float32(), pa.decimal128(9, 4)])
        scale = 1.0
        if self.chance(0.02, "percent"):
            scale = 100.0
        for row in rows:
            row[name] = draw() * scale
        if self.chance(0.2):
            bad = [None, math.nan, math.inf, -math.inf, -0.2, 1.5, -1e-10, 1 + 1e-10]
            for row in rng.sample(rows, rng.randint(1, 4)):
                row[name] = rng.choice(bad)
        if pa.types.is_decimal(kind):
            for row in rows:
                v = row[name]
                row[name] = None if v is None or not math.isfinite(v) else round(Decimal(v), 4)
        if self.chance(0.01, "text as score"):
            for row in rows:
                row[name] = str(row[name])
            return pa.string()
        return kind

    def labels(self, rows: list[Values], name: str, score: str) -> pa.DataType:
        rng = self.rng
        how = rng.choice(["binary"] * 5 + ["share", "ones", "few"])
        odd = self.rng.random()
        low, high = 0.0, 1.0
        if odd < 0.02:
            self.odd.append("labels -1 and 1")
            low = -1.0
        elif odd < 0.03:
            self.odd.append("labels in percent")
            high = 100.0
        for row in rows:
            near = row[score] if isinstance(row[score], float) and 0 <= row[score] <= 1 else 0.5
            one = rng.random() < 0.7 * near + 0.15
            value = {
                "binary": float(one),
                "share": rng.random(),
                "ones": 1.0,
                "few": float(rng.random() < 0.02),
            }
            row[name] = low + (high - low) * value[how]
        if self.chance(0.3):
            share = rng.choice([0.1, 0.5, 0.95])
            for row in rows:
                if rng.random() < share:
                    row[name] = None
        if self.chance(0.1):
            for row in rng.sample(rows, 2):
                row[name] = rng.choice([math.nan, math.inf, -0.5, 1.2, -1e-12])
        whole = all(row[name] is None or float(row[name]).is_integer() for row in rows)
        if whole and self.chance(0.3):
            for row in rows:
                row[name] = None if row[name] is None else int(row[name])
            return rng.choice([pa.int32(), pa.int8(), pa.int64()])
        return rng.choice([pa.float64(), pa.float64(), pa.float32()])

    def weights(self, rows: list[Values], name: str) -> pa.DataType:
        rng = self.rng
        how = rng.choice(["ints", "ints", "any", "constant", "zeros", "span"])
        draw: Callable[[], float] = {
            "ints": lambda: float(rng.randint(1, 5)), "any": lambda: rng.random() * 3,
            "constant": lambda: 100.0, "zeros": lambda: rng.choice([0.0, 1.0, 2.0]),
            "span": lambda: 10 ** rng.uniform(-3, 4),
        }[how]  # fmt: skip
        for row in rows:
            row[name] = draw()
        if self.chance(0.04, "one huge weight"):
            rng.choice(rows)[name] = rng.choice([1e30, 1e12, 1e200])
        if self.chance(0.03, "weights of any size"):
            for row in rows:
                row[name] = 10 ** rng.uniform(-12, 12)
        if self.chance(0.02, "negative weight"):
            rng.choice(rows)[name] = -1.0
        if self.chance(0.02, "no weight at all"):
            for row in rows:
                row[name] = 0.0
        if self.chance(0.1):
            for row in rng.sample(rows, 2):
                row[name] = rng.choice([None, math.nan, math.inf])
        return pa.float64()

    def split(self, rows: list[Values], types: dict[str, pa.DataType], key: list[str]) -> dict[str, Any]:
        rng = self.rng
        found: dict[str, Any] = {
            "test": rng.choice([0.2, 0.4, 0.8]), "early_stopping": rng.choice([0.1, 0.3, 0.7]),
            "seed": rng.randint(0, 9),
        }  # fmt: skip
        if self.chance(0.15):
            name = self.name()
            for row in rows:
                row[name] = rng.choice(["fit", "test"])
            if self.chance(0.1, "a part called otherwise"):
                rows[0][name] = rng.choice(["Test", None, "train", "early_stopping"])
            types[name] = pa.string()
            found["column"] = name
        return found

    def latest(self, rows: list[Values], types: dict[str, pa.DataType], key: list[str]) -> str:
        rng, name = self.rng, self.name()
        again = [dict(row) for row in rng.sample(rows, max(1, len(rows) // 10))]
        rows += again
        start = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
        for i, at in enumerate(rng.sample(range(5 * len(rows)), len(rows))):
            rows[i][name] = at
        kind: pa.DataType = rng.choice([pa.int64(), pa.date32(), pa.timestamp("us", tz="UTC"), pa.float64()])
        for row in rows:
            at = row[name]
            if pa.types.is_date(kind):
                row[name] = (start + dt.timedelta(days=at)).date()
            elif pa.types.is_timestamp(kind):
                row[name] = start + dt.timedelta(seconds=at)
            elif pa.types.is_floating(kind):
                row[name] = at / 8
        if self.chance(0.1, "latest by something else"):
            kind = pa.map_(pa.string(), pa.int64())
            for row in rows:
                row[name] = [("a", 1)]
        elif self.chance(0.1):
            again[0][name] = None
        types[name] = kind
        return name

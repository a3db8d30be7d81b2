"""Whole inputs of a job, made from a seed: tables of a few dozen rows, and a configuration for them."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

Values = dict[str, Any]
"""One row by column."""

NAMES = (
    "id", "person no", "a.b", "a`b", "ünï", "split", "reasons", "source", "x'y", 'q"r', "SELECT", "ID2",
    "a,b",     "a{b}", "k=v", "0", "run_id", "group", "_c0", "bell😀", "score", "label", "weight", "rate %",
    "[1]", "a/b",     "ds2", "value", "w", "y", "f", "level", "metric", "stage", "é", "Region",
    "AGE", "job-title", "(x)", "a\\b",
)  # fmt: skip
HOSTILE_NAMES = ("__x", "__score", "__family_0", "__unmatched", "calibrated_score", "ds")
FOLDERS = ("scored", "a b", "é", "x[1]", "a{b,c}", "p%20q", "day=1", "a+b", "q?", "star*")
DAY = "2026-11-26"


@dataclass(frozen=True)
class Condition:
    """A predicate as SQL, and what it says about a row: true, false, or None where it is null."""

    name: str
    where: str
    holds: Callable[[Values], bool | None]
    columns: tuple[str, ...]
    fails: bool = False


@dataclass(frozen=True)
class Attributes:
    """One attribute table; its rows hold the key too."""

    rows: list[Values]
    types: Mapping[str, pa.DataType]
    format: str
    on_unmatched: str


@dataclass(frozen=True)
class Pair:
    """Tables and configuration.

    Parameters
    ----------
    seed : int
    key : list of str
    scored : list of dict
    types : mapping of str to DataType
        Of the columns of the scored table.
    format : str
    attributes : list of Attributes
    conditions : list of Condition
    config : dict
        With paths relative to the pair's folder: see :meth:`write`.
    odd : list of str
        What was done that may be refused; a pair without any must run.
    files : int
    """

    seed: int
    key: list[str]
    scored: list[Values]
    types: Mapping[str, pa.DataType]
    format: str
    attributes: list[Attributes]
    conditions: list[Condition]
    config: dict[str, Any]
    folders: list[str]
    odd: list[str] = field(default_factory=list)
    files: int = 1

    def write(self, root: Path) -> Path:
        """Write the tables and the configuration below ``root``; returns the configuration's path."""
        rng = Random(self.seed)
        config = json.loads(json.dumps(self.config))
        places = [root / "in" / name for name in self.folders]
        config["scored"]["path"] = str(places[0])
        for section, place in zip(config["attributes"], places[1:], strict=True):
            section["path"] = str(place)
        for section in ("output", "model", "report"):
            if section in config:
                config[section]["path"] = str(root / "out" / config[section]["path"])
        _write(places[0], self.scored, self.types, self.format, self.files, rng)
        for place, table in zip(places[1:], self.attributes, strict=True):
            _write(place, table.rows, table.types, table.format, rng.randint(1, 3), rng)
        file = root / "run.yaml"
        file.write_text(json.dumps(config, indent=1), encoding="utf-8")  # JSON is YAML
        return file


def _write(
    folder: Path, rows: Sequence[Values], types: Mapping[str, pa.DataType], form: str, files: int, rng: Random
) -> None:
    folder.mkdir(parents=True)
    parts: list[list[Values]] = [[] for _ in range(files)]
    for row in rows:
        rng.choice(parts).append(row)
    for i, part in enumerate(parts):
        columns = {name: pa.array([row[name] for row in part], kind) for name, kind in types.items()}
        table = pa.table(list(columns.values()), names=list(columns))
        if form == "csv":
            pc.write_csv(table, folder / f"part-{i}.csv")
        else:
            pq.write_table(table, folder / f"part-{i}.parquet")


def pair(seed: int) -> Pair:
    """The pair of a seed."""
    return _Maker(Random(seed)).make(seed)


class _Maker:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.odd: list[str] = []
        self.taken: set[str] = set()

    def chance(self, p: float, odd: str | None = None) -> bool:
        """True with this probability; what is odd is noted."""
        hit = self.rng.random() < p
        if hit and odd:
            self.odd.append(odd)
        return hit

    def name(self) -> str:
        """A column name; now and then one that is refused, or the twin of another in capitals."""
        rng = self.rng
        if self.taken and self.chance(0.004, "twin"):
            return rng.choice(sorted(self.taken)).swapcase()
        if self.chance(0.006, "hostile name"):
            return rng.choice(HOSTILE_NAMES)
        free = [n for n in NAMES if n.casefold() not in self.taken]
        found = rng.choice(free)
        self.taken.add(found.casefold())
        return found

    def make(self, seed: int) -> Pair:  # noqa: PLR0912  (one choice after the other)
        rng = self.rng
        n = rng.choice([20, 40, 60, 100, 150, 200])
        key = [self.name() for _ in range(rng.choice([1, 1, 2]))]
        if {k.casefold() for k in key} & {"split", "reasons", "source", "ds"} or len(set(key)) < len(key):
            self.odd.append("name of the key")
        key_types = {k: rng.choice([pa.int64(), pa.int32(), pa.string(), pa.date32()]) for k in key}
        keys = self.keys(key, key_types, n)
        score, label = self.name(), self.name()
        weight = self.name() if self.chance(0.5) else None
        if {c.casefold() for c in (score, label, weight) if c} & {"split"}:
            self.odd.append("name of a role")
        rows = [dict(k) for k in keys]
        types: dict[str, pa.DataType] = dict(key_types)
        types[score] = self.scores(rows, score)
        types[label] = self.labels(rows, label, score)
        if weight:
            types[weight] = self.weights(rows, weight)
        scored: dict[str, Any] = {"key": key, "score": score, "label": label}
        if weight:
            scored["weight"] = weight
        split = self.split(rows, types, key)
        if self.chance(0.15):
            scored["dedupe"] = {"latest_by": self.latest(rows, types, key)}
        elif self.chance(0.04, "repeated key"):
            rows.append(dict(rng.choice(rows)))
        attributes = [self.table(keys, key, key_types) for _ in range(rng.choice([1, 1, 1, 2]))]
        cuts, conditions = self.groups(attributes, key)
        groups: dict[str, Any] = {
            "min_share": rng.choice([0, 0.01, 0.05, 0.1, 0.3]), "columns": cuts,
            "predicates": [{"name": c.name, "where": c.where} for c in conditions],
            "intersections": rng.choice([1, 1, 2]),
        }  # fmt: skip
        if self.chance(0.03, "min_share"):
            groups["min_share"] = 0.99
        if len(types) < len(set(types) | set(key)) or len({t.casefold() for t in types}) < len(types):
            self.odd.append("twin in the scored table")
        rng.shuffle(rows)
        folders = [self.folder(f"t{i}") for i in range(1 + len(attributes))]
        config: dict[str, Any] = {
            "scored": scored,
            "attributes": [{"key": rng.sample(key, len(key)), "on_unmatched": a.on_unmatched,
                            "format": a.format} for a in attributes],
            "groups": groups, "split": split, "calibrator": self.calibrator(),
            "evaluation": {"levels": rng.choice([[2], [1], [5, 10], [3, 7], [20], [10, 20, 30]]), "draws": 5,
                           "min_group_rows": rng.choice([1, 2, 2, 20])},
            "output": {"path": "table"}, "model": {"path": "model"}, "gate": {"must_improve": False},
            "max_rejected_share": 1.0,
        }  # fmt: skip
        if self.chance(0.4):
            config["output"]["partition"] = {"ds": DAY}
        if self.chance(0.05, "gate"):
            config["gate"] = {"max_mc_error": 0.001}
        elif self.chance(0.2, "gate"):
            del config["gate"]
        if self.chance(0.2, "share rejected"):
            del config["max_rejected_share"]
        if self.chance(0.1):
            config["allow_empty"] = True
        if self.chance(0.03):
            config["report"] = {"path": "report.html"}
        return Pair(seed, key, rows, types, "parquet", attributes, conditions, config, folders, self.odd,
                    rng.choice([1, 1, 2, 5]))  # fmt: skip

    def folder(self, plain: str) -> str:
        return f"{plain} {self.rng.choice(FOLDERS)}" if self.chance(0.1) else plain

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
        return Attributes(rows, types, "parquet", policy)

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

    def calibrator(self) -> dict[str, Any]:
        rng = self.rng
        method = rng.choice(["trees"] * 5 + ["multiaccuracy", "lsboost", "mcboost", "squarelev", "none"])
        return {
            "method": method, "engine": "lightgbm", "max_trees": 3,
            "early_stopping_rounds": rng.choice([1, 3]),
            "learning_rate": rng.choice([0.1, 0.3, 1.0]), "feature_fraction": rng.choice([1.0, 0.5]),
            "link": rng.choice(["identity", "identity", "logit"]), "rounds": rng.choice([1, 1, 2, "auto"]),
            "refit": rng.random() < 0.3, "score_bins": rng.choice([0, 4, 16]),
            "min_rows_in_leaf": rng.choice([1, 5, 20]), "seed": rng.randint(0, 9),
            "multiaccuracy": {"penalties": [0.0, 0.01]},
            "mcboost": {"levels": rng.choice([1, 5, 10]), "max_patches": 20, "patience": 5},
            "lsboost": {"levels": rng.choice([1, 5]), "depth": rng.choice([1, 2]), "max_rounds": 5},
            "squarelev": {"max_rounds": 5},
        }  # fmt: skip

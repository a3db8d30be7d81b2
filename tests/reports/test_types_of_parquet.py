"""Every type that a Parquet file may hold, in every role: the values that pyarrow reads, or one sentence."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from mcspark.config import AttributeTable, ScoredTable
from mcspark.data.rows.schema import check_attribute_schema, check_scored_schema
from mcspark.data.tables import read_table
from mcspark.errors import ContractError

NAIVE = [dt.datetime(2026, 11, 26, 1, 2, 3, 4000), dt.datetime(1969, 12, 31, 23, 59), None]
DAYS = [dt.date(2026, 11, 26), dt.date(1, 1, 1), None]
READ: dict[str, pa.Array] = {
    **{f"{t}": pa.array([0, 1, None], t) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    "uint8": pa.array([0, 2**8 - 1, None], pa.uint8()),
    "uint16": pa.array([0, 2**16 - 1, None], pa.uint16()),
    "uint32": pa.array([0, 2**32 - 1, None], pa.uint32()),
    "uint64": pa.array([0, 2**64 - 1, None], pa.uint64()),
    "float": pa.array([0.5, -0.0, None], pa.float32()),
    "double": pa.array([0.1, float("inf"), None], pa.float64()),
    "decimal128": pa.array([Decimal("0.50"), Decimal("1" * 36 + ".11"), None], pa.decimal128(38, 2)),
    "narrow decimal256": pa.array([Decimal("0.50"), None, None], pa.decimal256(38, 2)),
    "bool": pa.array([True, False, None]),
    "string": pa.array(["01", "é\x00", None]),
    "large_string": pa.array(["01", "", None], pa.large_string()),
    "string_view": pa.array(["01", "x" * 20, None], pa.string_view()),
    "dictionary": pa.array(["a", "b", None]).dictionary_encode(),
    "date32": pa.array(DAYS, pa.date32()),
    "date64": pa.array(DAYS, pa.date64()),
    **{f"timestamp {u}": pa.array(NAIVE, pa.timestamp(u)) for u in ("ms", "us")},
    **{f"instant {u}": pa.array(NAIVE, pa.timestamp(u, "UTC")) for u in ("ms", "us")},
    "timestamp s": pa.array([0, 10**9, None], pa.timestamp("s")),
    "duration": pa.array([1, 2, None], pa.duration("us")),
    "null": pa.nulls(3),
    "binary": pa.array([b"\xff\x00", b"a", None]),
    "large_binary": pa.array([b"\xff\x00", b"a", None], pa.large_binary()),
    "binary_view": pa.array([b"\xff\x00", b"a", None], pa.binary_view()),
    "fixed binary": pa.array([b"abc", b"\x00\xff\x00", None], pa.binary(3)),
    "struct": pa.array([{"a": 1}, {"a": None}, None]),
    "list": pa.array([[1], [], None], pa.list_(pa.int64())),
    "large_list": pa.array([[1], [], None], pa.large_list(pa.int64())),
    "fixed list": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int32(), 2)),
    "map": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int32())),
}  # fmt: skip
UNREADABLE: dict[str, pa.Array] = {
    "timestamp ns": pa.array([0, 1, None], pa.timestamp("ns")),
    "instant ns": pa.array([0, 1, None], pa.timestamp("ns", "UTC")),
    "time32": pa.array([0, 1, None], pa.time32("ms")),
    "time64 us": pa.array([0, 1, None], pa.time64("us")),
    "time64 ns": pa.array([0, 1, None], pa.time64("ns")),
    "decimal256": pa.array([Decimal(1), Decimal(2), None], pa.decimal256(50, 2)),
    "list of timestamp ns": pa.array([[0], [], None], pa.list_(pa.timestamp("ns"))),
    "struct of time": pa.array([{"t": 1}, {"t": 2}, None], pa.struct([("t", pa.time64("us"))])),
}
HALF = {
    "half float": pa.array(np.array([0.5, 1, 2], np.float16)),
    "list of half floats": pa.array([[np.float16(1)], [], None], pa.list_(pa.float16())),
}
HALVES_SPOIL = pyspark.__version__.startswith("3.")
ALONE = UNREADABLE | ({} if HALVES_SPOIL else HALF)
"""Types that Spark cannot read, and that keep it from no other column."""
NO_KEY = {"float", "double", "bool"}
NO_VALUES = {
    "binary",
    "large_binary",
    "binary_view",
    "fixed binary",
    "struct",
    "list",
    "large_list",
    "fixed list",
    "map",
}
NO_NUMBER = NO_VALUES | {"bool", "string", "large_string", "string_view", "dictionary", "date32", "date64"}
ROLES = ("key", "group", "score", "label", "weight", "latest")
TIMES = {name for name in READ if name.startswith(("timestamp", "instant"))}


def written(folder, values: pa.Array) -> str:
    table = pa.table({"k": [1, 2, 3], "s": [0.1, 0.2, 0.3], "x": values})
    pq.write_table(table, folder / "part-0.parquet")
    return str(folder)


def refusal(spark, path: str, role: str) -> str | None:
    """What a job says about column x in a role; None if nothing is wrong with it."""
    roles: dict[str, Any] = {"key": {"key": ["x"]}, "latest": {"dedupe": {"latest_by": "x"}}}
    given: dict[str, Any] = {"key": ["k"], "score": "s", "label": None}
    source = ScoredTable.model_validate(
        {"path": path, **given, **roles.get(role, {role: "x"} if role != "group" else {})}
    )
    try:
        table = read_table(spark, source, ["k", "s", "x"])
        keep = ["x"] if role in ("group", "latest") else []
        check_scored_schema(table, source, source=path, keep=keep, valued=["x"] if role == "group" else [])
        if role == "group":
            attributes = AttributeTable(path=path, key=["k"])
            check_attribute_schema(table, attributes, source=path, needed=["x"], valued=["x"],
                                   scored_schema=table.schema)  # fmt: skip
    except ContractError as error:
        return str(error)
    return None


def plain(value: Any) -> Any:
    if isinstance(value, dt.timedelta):
        return round(value.total_seconds() * 1e6)
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, bytearray):
        return bytes(value)
    return value.asDict() if hasattr(value, "asDict") else value


@pytest.mark.parametrize("name", READ)
def test_a_type_that_is_read_has_the_values_of_an_independent_reader(spark, tmp_path, name):
    path = written(tmp_path, READ[name])
    table = read_table(spark, ScoredTable(path=path, key=["k"]))
    x = table.select("k", "x")
    if isinstance(READ[name].type, pa.MapType):
        found = {row["k"]: None if row["x"] is None else list(row["x"].items()) for row in x.collect()}
    elif name in TIMES:  # as text: the driver's own clock has no say
        found = {row["k"]: row["x"] for row in x.selectExpr("k", "cast(x as string) x").collect()}
    else:
        found = {row["k"]: plain(row["x"]) for row in x.collect()}
    independent = pq.read_table(path).to_pydict()
    wanted = {k: plain(v) for k, v in zip(independent["k"], independent["x"], strict=True)}
    if name in TIMES:
        wanted = {k: None if v is None else _spelled(v) for k, v in wanted.items()}
    assert found == wanted
    refused = {role: refusal(spark, path, role) for role in ROLES}
    bad_key = NO_KEY | NO_VALUES | TIMES
    assert (refused["key"] is not None) == (name in bad_key)
    assert (refused["group"] is not None) == (refused["latest"] is not None) == (name in NO_VALUES)
    for role in ("score", "label", "weight"):
        assert (refused[role] is not None) == (name in NO_NUMBER | TIMES)
    for words in filter(None, refused.values()):
        assert "~ x " in words
        assert "java" not in words


def _spelled(when: dt.datetime) -> str:
    text = when.isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


@pytest.mark.parametrize("name", ALONE)
def test_a_type_that_spark_cannot_read_is_refused_where_it_is_used_and_nowhere_else(spark, tmp_path, name):
    path = written(tmp_path, ALONE[name])
    unused = read_table(spark, ScoredTable(path=path, key=["k"]), ["k", "s"])
    assert sorted(tuple(row) for row in unused.collect()) == [(1, 0.1), (2, 0.2), (3, 0.3)]
    for role in ROLES:
        words = refusal(spark, path, role)
        assert words is not None
        assert "1 column(s) of part-0.parquet cannot be read" in words
        assert "Spark cannot read this type; write it" in words
        assert ("write it as float32" in words) == (name in HALF)
        assert "java" not in words


@pytest.mark.skipif(not HALVES_SPOIL, reason="the Parquet of Spark 4 reads the other columns")
@pytest.mark.parametrize("name", HALF)
def test_half_floats_are_named_since_they_spoil_the_whole_file(spark, tmp_path, name):
    path = written(tmp_path, HALF[name])
    with pytest.raises(
        ContractError, match=r"part-0\.parquet has half floats \(x\).*write them as float32"
    ) as refused:
        read_table(spark, ScoredTable(path=path, key=["k"]), ["k", "s"])
    assert "\n" not in str(refused.value)


def test_jobs_read_only_what_they_need(world, people):
    """Nanoseconds, times and wide decimals where nobody asks; a date that stands for none as a key."""
    extra = {name: pa.array([None] * len(people), values.type) for name, values in UNREADABLE.items()}
    for table in ("scored", "attributes"):
        file = world.root / table / "part-0.parquet"
        rows = pq.read_table(file)
        days = pa.array([dt.date(1, 1, 1), dt.date(2026, 11, 26)] * (len(people) // 2))
        for name, values in {**extra, "day": days}.items():
            rows = rows.append_column(name, values)
        pq.write_table(rows, file)
    key = ["house", "person", "day"]
    attributes = [{"path": str(world.root / "attributes"), "key": key}]
    done = world.ran(scored={"key": key}, attributes=attributes)
    assert done.summary["rows"]["scored"] == len(people)
    assert "unused columns that Spark cannot read" in done.log
    assert set(world.output(done)["day"]) == {dt.date(1, 1, 1), dt.date(2026, 11, 26)}
    refused = r"1 column\(s\) of part-0\.parquet cannot be read: optional int64 timestamp ns .*NANOS"
    world.refused(refused, scored={"dedupe": {"latest_by": "timestamp ns"}})


def test_the_latest_by_a_map_is_refused(world):
    file = world.root / "scored" / "part-0.parquet"
    rows = pq.read_table(file)
    pq.write_table(
        rows.append_column("m", pa.array([[("a", 1)]] * len(rows), pa.map_(pa.string(), pa.int32()))), file
    )
    world.refused(r"~ m map<string,int>: not ordered", scored={"dedupe": {"latest_by": "m"}})

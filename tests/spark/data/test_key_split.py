"""The split: a function of the key alone, and the one that the documentation defines."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from mcspark.config import Split
from mcspark.errors import ContractError
from mcspark.ml.split import check_given_split, place, role

MASK = 2**64 - 1
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def rotate(x, r):
    return ((x << r) | (x >> (64 - r))) & MASK


def lane(acc, word):
    return rotate((acc + word * P2) & MASK, 31) * P1 & MASK


def xxh64(data: bytes, seed: int) -> int:
    """XXH64 after its published specification."""
    rest, size = data, len(data)
    if size >= 32:
        acc = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK]
        while len(rest) >= 32:
            acc = [lane(a, int.from_bytes(rest[8 * i : 8 * i + 8], "little")) for i, a in enumerate(acc)]
            rest = rest[32:]
        h = sum(rotate(a, r) for a, r in zip(acc, (1, 7, 12, 18), strict=True)) & MASK
        for a in acc:
            h = ((h ^ lane(0, a)) * P1 + P4) & MASK
    else:
        h = (seed + P5) & MASK
    h = (h + size) & MASK
    while len(rest) >= 8:
        h = (rotate(h ^ lane(0, int.from_bytes(rest[:8], "little")), 27) * P1 + P4) & MASK
        rest = rest[8:]
    if len(rest) >= 4:
        h = (rotate(h ^ (int.from_bytes(rest[:4], "little") * P1 & MASK), 23) * P2 + P3) & MASK
        rest = rest[4:]
    for byte in rest:
        h = rotate(h ^ (byte * P5 & MASK), 11) * P1 & MASK
    h = (h ^ (h >> 33)) * P2 & MASK
    h = (h ^ (h >> 29)) * P3 & MASK
    return h ^ (h >> 32)


def roles(df, split, key=("h", "p")):
    out = df.select(*key, role(key, F.col("label"), split).alias("split"))
    return {tuple(row)[:-1]: row["split"] for row in out.collect()}


@pytest.fixture(scope="module")
def people(spark):
    return spark.range(4000).selectExpr(
        "concat('2024HU', lpad(id div 3, 7, '0')) h", "cast(id % 3 + 1 as int) p",
        "if(id % 5 = 0, null, 0.5) label", "if(id % 4 = 0, 'test', 'fit') given",
    )  # fmt: skip


def test_place_is_as_documented(spark):
    rows = [("01", 1), ("é x", -7), ("", 0), ("a" * 70, 2**31 - 1)]
    frame = spark.createDataFrame(rows, "h string, p int")
    got = {(r["h"], r["p"]): r["u"] for r in frame.withColumn("u", place(["h", "p"], 7)).collect()}
    for h, p in rows:
        assert got[h, p] == (xxh64(f"7\x1f{h}\x1f{p}".encode(), 42) >> 11) / 2**53


def test_shares_and_unlabelled_rows(people):
    got = roles(people, Split())
    labelled = [r for r in got.values() if r is not None]
    assert len(got) - len(labelled) == 800
    n = len(labelled)
    for name, share in (("test", 0.4), ("early_stopping", 0.18), ("fit", 0.42)):
        assert labelled.count(name) / n == pytest.approx(share, abs=4 * (share * (1 - share) / n) ** 0.5)


def test_no_order_no_partitioning_and_no_integer_width_changes_it(spark, people):
    shuffled = (
        people.repartition(7, "label")
        .orderBy(F.xxhash64("p", "h"))
        .withColumn("p", F.col("p").cast("bigint"))
    )
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        again = roles(shuffled, Split())
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert again == roles(people, Split())


def test_the_seed_and_the_borders_between_key_columns_matter(spark, people):
    assert roles(people, Split(seed=8)) != roles(people, Split())
    frame = spark.createDataFrame([("1", "23"), ("12", "3")], "h string, p string")
    assert frame.select(place(["h", "p"], 7)).distinct().count() == 2


def test_extreme_shares(people):
    assert set(roles(people.where("label is not null"), Split(early_stopping=1e-12)).values()) == {
        "fit",
        "test",
    }
    none_tested = roles(people.where("label is not null"), Split(test=1e-12))
    assert set(none_tested.values()) == {"fit", "early_stopping"}


def test_a_given_split_keeps_its_test_rows(people):
    rows = people.select(
        "h", "p", "label", "given", role(["h", "p"], F.col("label"), Split(column="given")).alias("r")
    )
    count = {
        (r["given"], r["r"]): r["n"]
        for r in rows.groupBy("given", "r").agg(F.count("*").alias("n")).collect()
    }
    assert set(count) == {
        ("test", "test"), ("test", None), ("fit", "fit"), ("fit", "early_stopping"), ("fit", None),
    }  # fmt: skip
    stops, fits = count["fit", "early_stopping"], count["fit", "fit"]
    assert stops / (stops + fits) == pytest.approx(0.3, abs=0.04)


def test_a_given_split_says_fit_or_test(spark):
    rows = [("a", 1.0, "fit"), ("b", 1.0, "test"), ("c", None, "other")]
    check_given_split(
        spark.createDataFrame(rows, "k string, label double, g string"), "label", "g", source="t"
    )
    rows += [("d", 1.0, None), ("e", 1.0, "Test"), ("f", 0.0, "Test")]
    frame = spark.createDataFrame(rows, "k string, label double, g string")
    with pytest.raises(ContractError, match=r"t: 3 labelled row\(s\) whose g is neither .* but 'Test', None"):
        check_given_split(frame, "label", "g", source="t")

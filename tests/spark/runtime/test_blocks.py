"""Arrow tables through a shuffle: nothing is lost, and equal values meet."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from mcspark.runtime.tasks import blocks
from mcspark.runtime.tasks.blocks import (
    by_bucket,
    byte_count,
    counted,
    spread_out,
    to_blocks,
    to_driver,
    unpacked,
)


def with_bucket_mates(table: pa.Table) -> pa.Table:
    """How many rows of each value are in this block."""
    value, rows = np.unique(table["value"].to_numpy(), return_counts=True)
    return pa.table({"value": value, "rows": rows})


@pytest.fixture
def rows(spark):
    return spark.range(5000, numPartitions=3).select((F.col("id") % 1700 - 40).alias("value"))


EXPECTED = {v - 40: 3 if v < 1600 else 2 for v in range(1700)}


@pytest.mark.parametrize("kept", [True, False])
def test_equal_values_meet_in_one_block(rows, kept):
    met = by_bucket(to_blocks(rows, lambda table: table, "value"), with_bucket_mates, kept=kept)
    found = to_driver(met)
    assert dict(zip(found["value"].to_pylist(), found["rows"].to_pylist(), strict=True)) == EXPECTED
    assert len(found) == len(EXPECTED)


def test_blocks_cut_again_meet_too(rows, monkeypatch):
    monkeypatch.setattr(blocks, "_ROWS_IN_BLOCK", 100)
    whole = to_blocks(rows, lambda table: table)
    assert counted(whole)[0] == 5000
    found = to_driver(by_bucket(spread_out(whole, lambda table: table, "value"), with_bucket_mates))
    assert dict(zip(found["value"].to_pylist(), found["rows"].to_pylist(), strict=True)) == EXPECTED


def test_pieces_are_the_whole(rows, monkeypatch):
    whole = to_blocks(rows, lambda table: table, "value")
    size = counted(whole)[1]
    monkeypatch.setattr(blocks, "byte_count", lambda _: 0.8 * size)  # a piece is a quarter of it
    found = to_driver(whole, size)
    assert sorted(found["value"].to_pylist()) == sorted(i % 1700 - 40 for i in range(5000))


def test_rows_of_spark_again(rows):
    found = unpacked(to_blocks(rows, lambda table: table, "value"), "value long", lambda table: table)
    assert found.exceptAll(rows).count() == rows.exceptAll(found).count() == 0


def test_no_rows_are_no_table(rows):
    none = to_blocks(rows.where("value > 9999"), lambda table: table, "value")
    assert to_driver(none) is None
    assert counted(none) == (0, 0)


@pytest.mark.parametrize(("size", "expected"), [("64m", 2**26), ("1g", 2**30), ("512", 512), ("10kb", 10240)])
def test_sizes_as_spark_writes_them(size, expected):
    assert byte_count(size) == expected

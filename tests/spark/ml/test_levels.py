"""Levels and bins in Spark, for every double where they could differ from NumPy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import functions as F

from mcspark.core.cells.levels import ScoreBins, base_levels, level_index
from mcspark.ml.cells.levels import level_column, with_bin

GRIDS = (1, 2, 3, 7, 10, 20, 30, 50, 75, 100, 300, 600)


def boundary_doubles() -> np.ndarray:
    """The edges of all grids, notorious decimals, and the neighbours of each."""
    edges = np.concatenate([np.arange(m + 1) / m for m in GRIDS])
    decimals = [0.0, -0.0, 0.1, 0.29, 0.3, 0.57, 0.58, 0.7, 1.0, 5e-324, 1e-300, 0.1 + 0.2, 1 - 0.9]
    exact = np.unique(np.concatenate([edges, decimals]))
    near = np.concatenate([[-0.0], exact, np.nextafter(exact, -1), np.nextafter(exact, 2)])
    return near[(near >= 0) & (near <= 1)]


@pytest.fixture(scope="module")
def scores(spark):
    frame = spark.createDataFrame(pd.DataFrame({"score": boundary_doubles()})).persist()
    assert np.signbit(frame.toPandas()["score"]).sum() == 1  # -0.0 came through
    yield frame
    frame.unpersist()


def test_levels_equal_numpy_at_every_edge(scores):
    names = [f"m{m}" for m in GRIDS]
    table = scores.select(
        "score", *[level_column(F.col("score"), m).alias(n) for m, n in zip(GRIDS, names, strict=True)]
    )
    found = table.toPandas()
    for m, name in zip(GRIDS, names, strict=True):
        score, level = found["score"].to_numpy(), found[name].to_numpy()
        assert np.array_equal(level, level_index(score, m)), m
        assert level.min() == 0
        assert level.max() == m - 1
        # The definition itself: k / m <= score < (k + 1) / m, and 1.0 in the last level.
        assert np.array_equal(
            level, np.minimum(np.searchsorted(np.arange(m + 1) / m, score, "right") - 1, m - 1)
        )


def test_levels_by_hand(spark):
    cases = [(0.0, 0), (-0.0, 0), (0.1, 1), (0.29, 2), (0.3, 3), (0.7, 7), (1.0, 9)]
    frame = spark.createDataFrame(cases, "score double, expected int")
    found = frame.select("expected", level_column(F.col("score"), 10).alias("level")).collect()
    assert [row["level"] for row in found] == [row["expected"] for row in found]
    fine = frame.where("score = 0.29").select(level_column(F.col("score"), 100).alias("level"))
    assert fine.head()["level"] == 29  # floor(0.29 * 100) is 28


@pytest.mark.parametrize("kind", ["flat", "halved", "mixed"])
def test_bins_equal_numpy_at_every_edge(spark, scores, kind):
    base = base_levels([10, 20, 30, 50, 75, 100])
    depth = {"flat": [0] * base, "halved": [2] * base, "mixed": [(7 * j) % 11 for j in range(base)]}[kind]
    bins = ScoreBins(base, tuple(depth))
    edges = bins.edges()
    near = np.concatenate([edges, np.nextafter(edges, -1), np.nextafter(edges, 2)])
    near = near[(near >= 0) & (near <= 1)]
    frame = scores.union(spark.createDataFrame(pd.DataFrame({"score": near})))
    found = with_bin(frame, "score", bins, "__bin").toPandas()
    assert list(found) == ["score", "__bin"]
    assert np.array_equal(found["__bin"], bins.assign(found["score"].to_numpy()))
    expected = np.minimum(np.searchsorted(edges, found["score"], "right") - 1, bins.n_bins - 1)
    assert np.array_equal(found["__bin"], expected)

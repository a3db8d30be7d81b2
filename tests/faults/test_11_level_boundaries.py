"""Scores on, just below and just above the edges of levels."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mcspark.core.cells.levels import level_index
from mcspark.ml.cells.levels import level_column

NAMED = (0.0, 0.1, 0.29, 0.3, 0.7, 1.0, -0.0)


def around(values):
    below, above = np.nextafter(values, -1), np.nextafter(values, 2)
    every = np.concatenate([values, below, above])
    return np.unique(every[(every >= 0) & (every <= 1)])


@pytest.mark.parametrize("m", [10, 20, 30, 50, 75, 100])
def test_each_score_is_in_exactly_one_level(spark, m):
    """Spark, NumPy and the definition by exact fractions agree; 1.0 is in the last level."""
    from pyspark.sql import functions as F

    edges = np.arange(m + 1) / m
    scores = np.concatenate([around(np.array(NAMED)), around(edges)])
    exact = [
        next(k for k in reversed(range(m)) if k == 0 or Fraction(float(k / m)) <= Fraction(float(s)))
        for s in scores
    ]
    assert level_index(scores, m).tolist() == exact
    frame = spark.createDataFrame([(i, float(s)) for i, s in enumerate(scores)], ["i", "s"])
    rows = frame.select("i", level_column(F.col("s"), m).alias("level")).orderBy("i").collect()
    assert [row["level"] for row in rows] == exact
    assert level_index(np.array([1.0, 0.0, -0.0]), m).tolist() == [m - 1, 0, 0]

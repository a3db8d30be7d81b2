"""Level sets and score bins as Spark columns; equal to :mod:`mcspark.core.cells.levels` for every double."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mcspark.core.cells.levels import ScoreBins


def int_array(values: Iterable[int]) -> Column:
    """A constant array of integers; one parsed text instead of one call to the JVM an element."""
    return F.expr(f"array({','.join(str(int(v)) for v in values)})")


def level_column(score: Column, m: int | Column) -> Column:
    """Index of the level of a score in [0, 1] on the grid of ``m`` levels (see ``core.levels``)."""
    levels = F.lit(m) if isinstance(m, int) else m
    last = (levels - 1).cast("int")
    guess = F.greatest(F.least(F.floor(score * levels).cast("int"), last), F.lit(0))
    guess = guess - (score < guess / levels).cast("int")
    guess = guess + (score >= (guess + 1) / levels).cast("int")
    return F.greatest(F.least(guess, last), F.lit(0))


def with_bin(frame: DataFrame, score: str, bins: ScoreBins, name: str) -> DataFrame:
    """Add the score bin of each row as an integer column ``name``."""
    finest = max(bins.depth)
    fine, level = f"{name}_fine", f"{name}_level"
    # Nested grids agree about every score, so its level on the finest one tells the place in all others.
    framed = frame.withColumn(fine, level_column(F.col(score), bins.base << finest))
    framed = framed.withColumn(level, F.shiftright(fine, finest))
    within = F.col(fine).bitwiseAND((1 << finest) - 1)
    halvings_left = F.get(int_array(finest - d for d in bins.depth), F.col(level))
    place = F.get(int_array(bins.starts), F.col(level)) + F.call_function("shiftright", within, halvings_left)
    return framed.withColumn(name, place).drop(fine, level)

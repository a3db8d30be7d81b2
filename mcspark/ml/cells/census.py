"""Which segments the labelled rows fall into, and which are large enough for a calibrator of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mcspark.core.segments import MAX_SEGMENTS, SegmentTable
from mcspark.errors import ContractError
from mcspark.ml.cells.fixed_point import FixedPoint
from mcspark.ml.cells.signatures import category_name, place_among

MOST_POOLED = 100
"""Segments that share the pooled calibrator and are listed one by one: the largest of them."""


@dataclass(frozen=True)
class Census:
    """The segments of the labelled rows.

    Parameters
    ----------
    table : SegmentTable
        Those that are listed: with a calibrator of their own first, each of both kinds by their values.
    own : int
        How many have one of their own.
    rows : tuple of int
        Labelled rows of each.
    scales : tuple of FixedPoint
        Scale of the sums of each that has its own.
    pooled : int
        Segments that share the pooled calibrator, listed or not.
    """

    table: SegmentTable
    own: int
    rows: tuple[int, ...]
    scales: tuple[FixedPoint, ...]
    pooled: int

    @classmethod
    def of(
        cls,
        labelled: DataFrame,
        columns: Sequence[str],
        places: Sequence[int],
        weight: str | None,
        least: int,
    ) -> Census:
        """Count the segments.

        Parameters
        ----------
        labelled : DataFrame
            With the category columns of its families.
        columns : sequence of str
            That make a segment; a row that lacks a value of one is in none.
        places : sequence of int
            The family of each of them.
        weight : str, optional
        least : int
            Fewest labelled rows of a segment with a calibrator of its own.

        Raises
        ------
        ContractError
            If more than ``MAX_SEGMENTS`` are so large.
        """
        names = [category_name(place) for place in places]
        w = F.col(weight) if weight else F.lit(1.0)
        sums = (F.count(F.lit(1)).alias("n"), F.sum(w).alias("w"), F.sum(w * w).alias("w2"))
        counted = labelled.dropna(subset=names).groupBy(*names).agg(*sums)
        most = MAX_SEGMENTS + MOST_POOLED + 1
        found = counted.orderBy(F.desc("n"), *names).limit(most).toPandas()
        every = len(found) if len(found) < most else counted.count()
        large = int((found["n"] >= least).sum())
        if large > MAX_SEGMENTS:
            over = "over " if large == most else ""
            raise ContractError(
                f"{over}{large} segments by {', '.join(columns)} have at least {least} labelled rows, and at "
                f"most {MAX_SEGMENTS} have a calibrator of their own; raise segments.min_rows, or name fewer "
                "columns"
            )
        scales = {i: _scale(w, w2) for i, (w, w2) in enumerate(zip(found["w"], found["w2"], strict=True))}
        usable = np.array([scales[i] is not None for i in found.index], dtype=bool)
        own = found[(found["n"] >= least) & usable].sort_values(names)
        others = found.drop(own.index).head(MOST_POOLED).sort_values(names)
        told_of = pd.concat([own, others])
        values = list(told_of[names].itertuples(index=False, name=None))
        return cls(
            SegmentTable.of_values(columns, values),
            len(own),
            tuple(int(n) for n in told_of["n"]),
            tuple(scale for i in own.index if (scale := scales[i]) is not None),
            every - len(own),
        )


def _scale(weight: float, weight_sq: float) -> FixedPoint | None:
    """None where nothing can be learned, since the rows have no weight that can be summed."""
    try:
        return FixedPoint.for_totals(weight, weight_sq)
    except ContractError:
        return None


def segment_key(table: SegmentTable, places: Sequence[int]) -> Column:
    """The key of each row's segment, see :meth:`mcspark.core.segments.SegmentTable.keys`."""
    key: Column = F.lit(0).cast("long")
    for family, place in zip(table.families, places, strict=True):
        if not family.categories:  # no row has a value of all columns
            return F.lit(0).cast("long")
        code = F.coalesce(place_among(F.col(category_name(place)), family.categories), F.lit(0))
        key = key * F.lit(len(family.categories) + 1) + code.cast("long")
    return key

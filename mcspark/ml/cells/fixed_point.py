"""The unit in which weights are summed as integers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mcspark.core.cells.cells import LEAST_TOTAL
from mcspark.errors import ContractError

_SUM_BITS = 60


@dataclass(frozen=True)
class FixedPoint:
    """Powers of two by which weights and squared weights are scaled before they are summed as integers.

    A sum of doubles depends on the order of the rows, which no cluster repeats. Integers do not: each term is
    rounded once, to about 2^-60 of the total, and the sum is exact.
    """

    weight: float
    weight_sq: float

    @classmethod
    def for_totals(cls, weight: float, weight_sq: float) -> FixedPoint:
        """Scales that keep sums of this size within a signed 64-bit integer.

        Raises
        ------
        ContractError
            If there is no weight, or the weights are too large or too small to be squared.
        """
        if not weight:
            raise ContractError(
                "no labelled row has any weight: there is nothing to measure or to learn from"
            )
        if not all(LEAST_TOTAL < total < 1 / LEAST_TOTAL for total in (weight, weight_sq)):
            raise ContractError(
                f"the weights sum to {weight:g} and their squares to {weight_sq:g}, which is out of range; "
                "divide the weights by their mean"
            )
        return cls(*(2.0 ** (_SUM_BITS - math.frexp(t * (1 + 1e-9))[1]) for t in (weight, weight_sq)))

    @classmethod
    def of(cls, frame: DataFrame, weight: str | None) -> FixedPoint:
        """Scales for the rows of a table, and for any part of it; see :meth:`for_totals`."""
        return cls.counted(frame, weight)[0]

    @classmethod
    def counted(cls, frame: DataFrame, weight: str | None) -> tuple[FixedPoint, int]:
        """Scales as of :meth:`of`, and the number of rows."""
        w = F.col(weight) if weight else F.lit(1.0)
        row = frame.agg(F.sum(w), F.sum(w * w), F.count(F.lit(1))).first()
        assert row is not None  # an aggregate without keys has one row
        return cls.for_totals(row[0] or 0.0, row[1] or 0.0), int(row[2])

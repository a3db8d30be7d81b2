"""How well scores rank rows, from the weight of positive and negative rows at each distinct score.

The scores may be cut into runs: what each adds up to is known once the weight below and above it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcspark.core.cells.levels import FloatArray

DIGITS = 9
"""Means of equal scores differ by the rounding of their sums; these decimals are told apart."""


@dataclass(frozen=True)
class Ranked:
    """Area under the ROC curve and average precision; None where rows of a kind that it needs are missing."""

    auc: float | None
    average_precision: float | None

    @classmethod
    def of_sides(cls, positive: FloatArray, negative: FloatArray) -> Ranked:
        """From the weight of the positive and of the negative rows at each distinct score, ascending."""
        pairs = float(positive.sum() * negative.sum())
        down = positive[::-1]
        total = float(down.sum())
        return cls(
            won_pairs(positive, negative) / pairs if pairs > 0 else None,
            precise_hits(down, negative[::-1]) / total if total > 0 else None,
        )

    @classmethod
    def of_runs(cls, wins: float, hits: float, positive: float, negative: float) -> Ranked:
        """From the sums of :func:`won_pairs` and :func:`precise_hits`, and the weight of each kind of row."""
        pairs = positive * negative
        return cls(wins / pairs if pairs > 0 else None, hits / positive if positive > 0 else None)


def won_pairs(positive: FloatArray, negative: FloatArray, below: float = 0.0) -> float:
    """Pairs in which the positive row has the higher score, a tie counting half; scores ascend.

    ``below`` is the weight of negative rows with lower scores than these.
    """
    under = below + (np.cumsum(negative) - negative)
    return float((positive * (under + negative / 2)).sum())


def precise_hits(
    positive: FloatArray, negative: FloatArray, above: tuple[float, float] = (0.0, 0.0)
) -> float:
    """Positive rows, each times the precision at its score; scores descend.

    ``above`` is the weight of positive and of negative rows with higher scores than these.
    """
    found = above[0] + np.cumsum(positive)
    taken = found + (above[1] + np.cumsum(negative))
    return float((positive * found / np.where(taken > 0, taken, 1.0)).sum())

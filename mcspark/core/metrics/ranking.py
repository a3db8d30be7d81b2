"""How well a score ranks rows: area under the ROC curve and average precision, from cells.

Rows of a cell stand at the cell's mean score, so rows that differ by less than a bin's width and share their
groups are ties. A label of 0.3 is 0.3 of a positive and 0.7 of a negative row.
"""

from __future__ import annotations

from mcspark.core.cells.summed import Summed


def auc(cells: Summed) -> float | None:
    """Area under the ROC curve: probability that a positive row has the higher score, a tie counting half.

    None where there are no positive or no negative rows.
    """
    return cells.ranked.auc


def average_precision(cells: Summed) -> float | None:
    """Area under the precision-recall curve as a step function, Σ (Rₖ − Rₖ₋₁) Pₖ.

    None where there are no positive rows.
    """
    return cells.ranked.average_precision

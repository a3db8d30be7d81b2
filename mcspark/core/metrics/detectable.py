"""How small a multicalibration error so many rows can show, computed before any row is read.

A calibrated score shows an error by chance. In a level that holds a share p of n rows, the mean of
*label − score* is about normal with variance σ²/(pn), so that the error of everyone is about Σ p·σ·√(2/(πpn))
over the levels. It is largest where all m levels weigh the same and the labels are as uncertain as they can
be: σ·√(2m/(πn)) with σ = 1/2. The noise floor of a run (:mod:`mcspark.core.metrics.noise`) is what its own
scores and labels make of it, mostly a half to the whole of this.
"""

from __future__ import annotations

import math

LARGEST_DEVIATION = 0.5
"""Standard deviation of labels in [0, 1] that are 0 and 1 equally often: none is larger."""


def smallest_error(rows: float, m: int) -> float:
    """MC error that a calibrated score may show by chance on ``m`` levels.

    Parameters
    ----------
    rows : float
        Rows to measure on, of equal weight; positive.
    m : int
        Number of levels.

    Returns
    -------
    float
        In the units of the score; not above 1.
    """
    return min(LARGEST_DEVIATION * math.sqrt(2 * m / (math.pi * rows)), 1.0)


def rows_for(error: float, m: int) -> int:
    """Rows to measure on, for which :func:`smallest_error` is no more than ``error``, positive."""
    return math.ceil(2 * m * (LARGEST_DEVIATION / error) ** 2 / math.pi)

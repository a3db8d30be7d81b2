"""Calibration errors without a grid, from cumulative sums of the residuals f − y in the order of the score.

The sums are taken at the edges of the score bins; inside a bin the order of rows is not known.

ECCE is the cumulative calibration error of Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu (2022): the range of
the cumulative residual, which is the largest error over any interval of scores, by its share of the rows.
Under perfect calibration it is, in units of σ, the range of a Brownian motion, whose distribution is known
(Feller 1951).

ATB is the averaged two-bin error of Hartline, Hu and Wu (2025), which no forecaster lowers in expectation by
reporting anything but the true probability.
"""

from __future__ import annotations

import math

import numpy as np

from mcspark.core.cells.levels import FloatArray
from mcspark.core.cells.summed import Summed
from mcspark.core.metrics.calibration_error import too_small_groups

DETECTABLE = 2.497672
"""Range of a Brownian motion on [0, 1] that chance exceeds in 5 % of all cases."""


def ecce(cells: Summed) -> float | None:
    """Range of the cumulative residual of all rows, in [0, 1]; None without weight."""
    total = cells.total("weight")
    return float(_ranges(_residual(cells)[None, :])[0]) / total if total > 0 else None


def ecce_sigma(cells: Summed) -> float | None:
    """ECCE in units of its σ under perfect calibration; about 1.6 is expected then."""
    error, sigma = ecce(cells), _sigma(cells)
    return error / sigma if error is not None and sigma else None


def ecce_p_value(cells: Summed) -> float | None:
    """Probability of an ECCE at least as large under perfect calibration, for many rows."""
    found = ecce_sigma(cells)
    return None if found is None else range_survival(found)


def ecce_detectable(cells: Summed) -> float | None:
    """Smallest ECCE that these rows can tell from chance at a level of 5 %."""
    sigma = _sigma(cells)
    return None if sigma is None else DETECTABLE * sigma


def worst_group_ecce_sigma(cells: Summed, min_rows: int = 1) -> tuple[float | None, str | None]:
    """Largest ECCE of a group in units of the group's own σ, and the group; groups too small are left out."""
    residual = cells.group_sums("score") - cells.group_sums("label")
    variance = cells.group_sums("chance").sum(axis=1)
    usable = ~too_small_groups(cells, min_rows) & (variance > 0)
    if not usable.any():
        return None, None
    found = np.where(usable, _ranges(residual) / np.sqrt(np.where(usable, variance, 1.0)), -1.0)
    worst = int(np.argmax(found))
    return float(found[worst]), cells.groups[worst]


def averaged_two_bin_error(cells: Summed) -> float | None:
    """Mean over a threshold t, uniform in [0, 1], of (Σ_{f<t} w(f − y) / Σw)² + (Σ_{f≥t} w(f − y) / Σw)².

    Inside a bin the cumulative residual is taken to be linear. None without weight.
    """
    total = cells.total("weight")
    if total <= 0:
        return None
    below = np.concatenate(([0.0], np.cumsum(_residual(cells)))) / total
    width = np.diff(cells.bins.edges())
    return float(sum((width * _mean_square(side)).sum() for side in (below, below[-1] - below)))


def range_survival(value: float) -> float:
    """Probability that the range of a Brownian motion on [0, 1] is at least ``value`` (Feller 1951)."""
    if value < _CERTAIN:
        return 1.0
    terms = math.ceil(_FAR / value) + 1
    tails = ((1 if k % 2 else -1) * k * math.erfc(k * value / math.sqrt(2)) / 2 for k in range(1, terms + 1))
    return min(max(8 * math.fsum(tails), 0.0), 1.0)


_CERTAIN = 0.3
"""Below this the range is larger for certain: the probability is 1 to every digit of a double."""

_FAR = 9.0
"""Standard deviations beyond which a normal tail adds nothing."""


def _residual(cells: Summed) -> FloatArray:
    """Σ w (f − y) of all rows in each bin."""
    return cells.level_sums("score") - cells.level_sums("label")


def _ranges(residual: FloatArray) -> FloatArray:
    """Range of the cumulative sums along the last axis, the empty sum included."""
    sums = np.cumsum(residual, axis=1)
    return np.asarray(np.maximum(sums.max(axis=1), 0.0) - np.minimum(sums.min(axis=1), 0.0))


def _sigma(cells: Summed) -> float | None:
    """Standard deviation of the mean residual under perfect calibration; None where it is 0."""
    total, variance = cells.total("weight"), cells.total("chance")
    return math.sqrt(variance) / total if total > 0 and variance > 0 else None


def _mean_square(value: FloatArray) -> FloatArray:
    """Mean square over each step of a function that is linear between its values."""
    first, last = value[:-1], value[1:]
    return np.asarray((first**2 + first * last + last**2) / 3)

"""Scores of several classes: calibrated class by class, and projected back to where they sum to one.

The projection divides by the sum. It is the nearest point of the simplex in the divergence of the log loss,
``D(q, c) = Σ q log(q / c) − Σ q + Σ c``, so that for every class y and every row

    −log q_y = −log c_y + (Σ c − 1) − D(q, c)  ≤  −log c_y + Σ c − 1:

projecting adds nothing to the log loss that the class-wise calibrators are about. (The Euclidean projection
does the same for the squared loss, but makes scores of classes exactly 0, which has no log loss.)
"""

from __future__ import annotations

import numpy as np

from mcspark.core.cells.levels import FloatArray

LEAST = float(np.finfo(np.float64).eps)
"""Scores are at least this in a log loss, as in scikit-learn."""


def projected(calibrated: FloatArray, given: FloatArray) -> FloatArray:
    """Vectors that sum to one.

    Parameters
    ----------
    calibrated : ndarray, shape (K, N)
        Calibrated score of each class, in [0, 1].
    given : ndarray, shape (K, N)
        The scores before: what they sum to one as, where all calibrated ones are 0; where these are 0 too,
        all classes are alike.
    """
    last = np.full_like(calibrated, 1.0 / len(calibrated))
    return _normalised(calibrated, _normalised(given, last))


def _normalised(values: FloatArray, otherwise: FloatArray) -> FloatArray:
    total = values.sum(axis=0)
    return np.where(total > 0, values / np.where(total > 0, total, 1.0), otherwise)

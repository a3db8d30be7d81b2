"""Isotonic regression by pooling adjacent violators."""

from __future__ import annotations

import numpy as np

from mcspark.core.cells.levels import FloatArray


def isotonic(weight: FloatArray, label: FloatArray) -> FloatArray:
    """The non-decreasing values nearest to the mean labels, in weighted squares.

    Parameters
    ----------
    weight, label : ndarray, shape (N,)
        Σw and Σw·y of each place, in the order of the score.

    Returns
    -------
    ndarray, shape (N,)
        Values; NaN at places without weight.
    """
    filled = np.flatnonzero(weight > 0)
    pools: list[tuple[float, float, int]] = []
    for w, y in zip(weight[filled].tolist(), label[filled].tolist(), strict=True):
        pool_w, pool_y, places = w, y, 1
        while pools and pools[-1][1] * pool_w >= pool_y * pools[-1][0]:
            before_w, before_y, before = pools.pop()
            pool_w, pool_y, places = pool_w + before_w, pool_y + before_y, places + before
        pools.append((pool_w, pool_y, places))
    found = np.full(len(weight), np.nan)
    means = [pool_y / pool_w for pool_w, pool_y, _ in pools]
    found[filled] = np.repeat(means, [places for *_, places in pools])
    return found

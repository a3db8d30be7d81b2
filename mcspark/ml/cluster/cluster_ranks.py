"""How well scores rank rows whose cells stay in the cluster.

The distinct scores are cut into runs of :data:`_RUN` decimals, each in one task. A run says what weight it
has; with the weight below and above it, it then says what it adds to both areas.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.cells.ranked import DIGITS, Ranked, precise_hits, won_pairs
from mcspark.ml.cluster.cluster_sums import Reading
from mcspark.runtime.tasks.blocks import by_bucket, spread_out, unpacked

_RUN = 2**14
_SCORE, _SIDES = "__score", ("positive", "negative")
_RUN_OF = "__run"


def ranked_of(signed: DataFrame, reading: Reading) -> Ranked:
    """As :attr:`mcspark.core.cells.cells.Cells.ranked`, for the cells of ``reading`` in these blocks."""

    def sides(block: pa.Table) -> pa.Table:
        cells = reading.cells(reading.of_role(block))
        cells = cells.take(cells.weight > 0)
        positive = np.clip(cells.label, 0.0, cells.weight)
        score = np.rint(np.round(cells.mean_score, DIGITS) * 10**DIGITS).astype(np.int64)
        by_side = (reading.whole("weight", side) for side in (positive, cells.weight - positive))
        columns = {_SCORE: score, _RUN_OF: score // _RUN, **dict(zip(_SIDES, by_side, strict=True))}
        return _merged(pa.table(columns))

    runs = by_bucket(spread_out(signed, sides, _RUN_OF), _merged, kept=True).persist(StorageLevel.DISK_ONLY)
    try:
        return _ranked(runs, 1 / reading.scale.weight)
    finally:
        runs.unpersist()


def _ranked(runs: DataFrame, unit: float) -> Ranked:
    weights = _by_run(runs, lambda _, positive, negative: (positive.sum(), negative.sum()), unit)
    if not len(weights):
        return Ranked(None, None)
    positive, negative = weights["first"], weights["second"]
    below = dict(zip(weights["run"], np.cumsum(negative) - negative, strict=True))
    above = {
        run: (float(up), float(down))
        for run, up, down in zip(weights["run"], _after(positive), _after(negative), strict=True)
    }

    def areas(run: int, positive: FloatArray, negative: FloatArray) -> tuple[float, float]:
        return (
            won_pairs(positive, negative, float(below[run])),
            precise_hits(positive[::-1], negative[::-1], above[run]),
        )

    found = _by_run(runs, areas, unit)
    return Ranked.of_runs(
        float(found["first"].sum()),
        float(found["second"].sum()),
        float(positive.sum()),
        float(negative.sum()),
    )


def _after(value: FloatArray) -> FloatArray:
    """Sum of the values that follow each."""
    return np.asarray(np.cumsum(value[::-1])[::-1] - value)


def _by_run(
    runs: DataFrame, say: Callable[[int, FloatArray, FloatArray], tuple[float, float]], unit: float
) -> dict[str, FloatArray]:
    """Two numbers of each run, in the order of the scores."""

    def reported(block: pa.Table) -> pa.Table:
        score = block[_SCORE].to_numpy()
        run, first = np.unique(score // _RUN, return_index=True)
        ends = np.append(first[1:], len(score))
        sides = [block[name].to_numpy().astype(np.float64) * unit for name in _SIDES]
        found = [
            say(int(one), sides[0][start:end], sides[1][start:end])
            for one, start, end in zip(run, first, ends, strict=True)
        ]
        one, other = np.array(found).reshape(-1, 2).T
        return pa.table({"run": run, "first": one, "second": other})

    table = unpacked(runs, "run long, first double, second double", reported).toPandas().sort_values("run")
    return {name: table[name].to_numpy() for name in ("run", "first", "second")} if len(table) else {}


def _merged(table: pa.Table) -> pa.Table:
    """Equal scores put together, in their order."""
    score, place = np.unique(table[_SCORE].to_numpy(), return_inverse=True)
    columns: dict[str, IntArray] = {_SCORE: score, _RUN_OF: score // _RUN}
    for name in _SIDES:
        columns[name] = np.zeros(len(score), dtype=np.int64)
        np.add.at(columns[name], place.reshape(-1), table[name].to_numpy())
    return pa.table(columns)

"""Whether what was fast was also right, by ways of computing that share nothing with the jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mcspark.benchmark.features import CATEGORIES

LEVELS = 20
"""The grid on which the error is computed again."""

_TOLERANCE = 1e-9


def brute_force(rows: DataFrame, score: str) -> tuple[float, float, str]:
    """Multicalibration error on :data:`LEVELS` levels, loss, and worst group of the test rows, in plain SQL.

    Parameters
    ----------
    rows : DataFrame
        ``score``, label, split and the raw attributes of every row.
    score : str
        Column to judge.
    """
    level = " + ".join(f"cast({score} >= {k}D / {LEVELS}D as int)" for k in range(1, LEVELS))
    gap = f"(2 * ({level}) + 1) / {2.0 * LEVELS}D - label"
    labelled = rows.where("label is not null")
    total = labelled.count()
    test = labelled.where("split = 'test'")
    square = test.agg(F.count(F.lit(1)), F.avg(F.expr(f"({score} - label) * ({score} - label)"))).first()
    assert square is not None
    worst = (-1.0, "")
    for category in CATEGORIES.values():
        shares = labelled.groupBy(F.expr(category).alias("group")).count().collect()
        groups = [row["group"] for row in shares if row["group"] and row["count"] > 0.01 * total]
        sums = test.groupBy(F.expr(category).alias("group"), F.expr(level).alias("level"))
        gaps = sums.agg(F.sum(F.expr(gap)).alias("gap")).where(F.col("group").isin(groups)).collect()
        for group in groups:
            error = math.fsum(abs(row["gap"]) for row in gaps if row["group"] == group) / square[0]
            worst = max(worst, (error, group))
    return worst[0], square[1], worst[1]


def check_metrics(rows: DataFrame, summary: Mapping[str, Any]) -> dict[str, bool]:
    """Whether a calibration's summary says what brute force finds in its output."""
    found = {}
    for stage, score in (("before", "score"), ("after", "calibrated_score")):
        said = summary["metrics"][stage]
        error, loss, group = brute_force(rows, score)
        grid = said["by_level"][str(LEVELS)]
        found[f"metrics_{stage}_equal"] = (
            math.isclose(grid["mc_error"], error, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
            and math.isclose(said["loss"], loss, rel_tol=_TOLERANCE)
            and grid["worst_group"] == group
        )
    return found


def check_rows(rows_in: int, output: DataFrame, *summaries: Mapping[str, Any]) -> bool:
    """Whether every row that came in was scored or rejected, and is in the output exactly then."""
    counts = [summary["rows"] for summary in summaries]
    adds_up = all(c["in"] == rows_in and c["in"] == c["scored"] + c["rejected"] for c in counts)
    return adds_up and output.count() == counts[0]["scored"]


def same_errors(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two stages of metrics agree on the error and the loss of every grid."""
    grids = one["by_level"]
    return set(grids) == set(other["by_level"]) and all(
        math.isclose(grids[m][name], other["by_level"][m][name], rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
        for m in grids
        for name in ("mc_error", "ma_error", "loss")
    )

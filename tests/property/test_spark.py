"""Spark against the definition on rows, for every metric, on batches of generated tables.

A dozen tables go through one pass: the table that a row is in is one more attribute, and the error of a group
of one table, times the table's share of the weight, is that of the intersection.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tables_of_rows import rows

from mcspark import GroupSet, MulticalibrationEvaluator
from mcspark.core.metrics.calibration_error import level_errors
from mcspark.core.metrics.smooth_ece import group_smooth_ece, smooth_ece

from .test_metrics import by_definition

BATCH = 12
SECTION = {
    "min_share": 0.0,
    "columns": [{"column": "t"}],
    "predicates": [{"name": f"g{g}", "where": f"g{g} = 1"} for g in range(3)],
    "intersections": 2,
}


def test_every_metric_of_every_table(spark):
    compared = []

    @given(st.lists(rows(least=2, most=15), min_size=BATCH, max_size=BATCH))
    @settings(
        max_examples=4, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    def check(tables):
        compared.append(compare(spark, tables))

    check()
    assert sum(compared) > 10 * BATCH


def compare(spark, tables):
    frame = pd.concat([
        pd.DataFrame({"t": f"t{i}", "f": r.score, "y": r.label, "w": r.weight}).assign(
            **{f"g{g}": r.member[:, g].astype(int) for g in range(3)}
        )
        for i, r in enumerate(tables)
    ])  # fmt: skip
    evaluator = MulticalibrationEvaluator(
        groups=GroupSet.from_config(SECTION), levels=20, predictionCol="f", labelCol="y", weightCol="w"
    )
    cells = evaluator.cells(spark.createDataFrame(frame.sample(frac=1, random_state=0)))
    total = frame["w"].sum()
    whole = cells.loss()
    assert whole == pytest.approx(np.average((frame["f"] - frame["y"]) ** 2, weights=frame["w"]), abs=1e-12)
    smooth = dict(zip(cells.groups, group_smooth_ece(cells).groups, strict=True))
    compared = 0
    for m in (5, 10, 20):
        found = level_errors(cells, m)
        mc, ma = (dict(zip(cells.groups, errors, strict=True)) for errors in (found.mc, found.ma))
        for i, r in enumerate(tables):
            share = r.weight.sum() / total
            expected_mc, expected_ma = by_definition(r, m)
            for g in range(3):
                name = f"t=t{i} & g{g}"
                if name in mc:
                    assert mc[name] == pytest.approx(expected_mc[g] * share, abs=1e-12)
                    assert ma[name] == pytest.approx(expected_ma[g] * share, abs=1e-12)
                    compared += 1
                    if m == 5:
                        inside = r.member[:, g] & (r.weight > 0)
                        rows_alone = smooth_ece(r.score[inside], r.label[inside], r.weight[inside])
                        assert smooth[name] == pytest.approx(rows_alone, abs=2e-3)
    return compared

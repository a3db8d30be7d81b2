"""All metrics of one score: the six-row table by hand, the table of metrics, and weights."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.metrics import measure

SCORE = np.array([0.1, 0.1, 0.3, 0.3, 0.8, 0.8])
LABEL = np.array([0.0, 1.0, 0.0, 1.0, 1.0, 1.0])
MEMBER = np.array([[1, 0], [1, 1], [0, 1], [0, 1], [1, 0], [1, 1]], dtype=bool)
SETTINGS = {"draws": 50, "seed": 1, "min_rows": 2}


def cells(weight=None, base=300, rows=slice(None), member=MEMBER):
    w = None if weight is None else np.asarray(weight, dtype=float)[rows]
    return Cells.from_rows(
        SCORE[rows], LABEL[rows], member[rows], bins=ScoreBins.uniform(base), weight=w, groups=("A", "B")
    )


def test_six_rows_by_hand():
    found = measure(cells(), (2, 10), **SETTINGS)
    # m = 2: values 0.25 and 0.75. A: |2(0.25) - 1| + |2(0.75) - 2|; B: |3(0.25) - 2| + |0.75 - 1|; of 6 rows.
    two = found.by_level[2]
    assert two.mc == pytest.approx([(0.5 + 0.5) / 6, (1.25 + 0.25) / 6], abs=1e-15)
    assert two.ma == pytest.approx([1.0 / 6, 1.5 / 6], abs=1e-15)
    assert (two.worst_group, two.level_sets) == ("B", 2)
    # m = 10: values 0.15, 0.35, 0.85. B alone: |0.15 - 1| + |0.7 - 1| + |0.85 - 1|.
    ten = found.by_level[10]
    assert ten.mc == pytest.approx([(0.7 + 0.3) / 6, (0.85 + 0.3 + 0.15) / 6], abs=1e-15)
    assert (ten.level_sets, ten.worst_group) == (3, "B")
    assert found.loss == pytest.approx((0.01 + 0.81 + 0.09 + 0.49 + 0.04 + 0.04) / 6, abs=1e-15)
    assert ten.loss == pytest.approx((0.0225 + 0.7225 + 0.1225 + 0.4225 + 2 * 0.0225) / 6, abs=1e-15)
    assert found.rows == 6
    assert [g.rows for g in found.groups] == [4, 4]


def test_weight_two_is_the_row_twice():
    weight = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 2.0])
    again = np.repeat(np.arange(6), weight.astype(int))
    one = measure(cells(weight), (10, 20), **SETTINGS)
    other = measure(cells(rows=again), (10, 20), **SETTINGS)
    for m in (10, 20):
        np.testing.assert_allclose(one.by_level[m].mc, other.by_level[m].mc, rtol=0, atol=1e-12)
        np.testing.assert_allclose(one.by_level[m].ma, other.by_level[m].ma, rtol=0, atol=1e-12)
        assert one.by_level[m].loss == pytest.approx(other.by_level[m].loss, abs=1e-12)
    assert one.loss == pytest.approx(other.loss, abs=1e-12)
    assert one.smooth.worst == pytest.approx(other.smooth.worst, abs=1e-12)
    assert (one.rows, other.rows) == (6, 10)


def test_the_unit_of_the_weights_says_nothing():
    weight = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 2.0])
    one, other = (measure(cells(w), (10,), **SETTINGS) for w in (weight, weight * 7.5))
    np.testing.assert_allclose(one.by_level[10].mc, other.by_level[10].mc, rtol=0, atol=1e-15)
    assert one.floors[10].expected == pytest.approx(other.floors[10].expected, abs=1e-12)


def test_the_summary_is_what_the_summary_line_promises():
    summary = json.loads(json.dumps(measure(cells(), (10, 20), **SETTINGS).summary(), allow_nan=False))
    assert {"worst_group_smece", "loss", "by_level"} <= set(summary)
    assert set(summary["by_level"]) == {"10", "20"}
    wanted = {"mc_error", "ma_error", "noise_floor", "loss", "level_sets", "worst_group"}
    assert wanted <= set(summary["by_level"]["20"])


def test_what_one_kind_of_labels_does_not_define_is_not_in_the_table():
    one = Cells.from_rows(SCORE, np.ones(6), MEMBER, bins=ScoreBins.uniform(300), groups=("A", "B"))
    table = {row.metric for row in measure(one, (10,), **SETTINGS).table()}
    assert "log_loss" in table
    assert "auc" not in table


def test_the_table_holds_every_group_and_grid_once():
    rows = list(measure(cells(), (10, 20), **SETTINGS).table())
    keys = [(r.metric, r.group, r.levels, r.level) for r in rows]
    assert len(set(keys)) == len(keys)
    assert {r.group for r in rows if r.metric == "group_mc_error" and r.levels == 20} == {"A", "B"}
    assert all(r.value is None or np.isfinite(r.value) for r in rows)
    by_group = {r.group: r.value for r in rows if r.metric == "group_mc_error" and r.levels == 10}
    worst = next(r for r in rows if r.metric == "mc_error" and r.levels == 10)
    assert worst.value == max(by_group.values())
    assert by_group[worst.group] == worst.value


def test_what_cancels_between_levels_is_in_one_error_and_not_in_the_other():
    label = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 0.0])
    cells = Cells.from_rows(SCORE, label, MEMBER, bins=ScoreBins.uniform(300), groups=("A", "B"))
    table = {(r.metric, r.group): r.value for r in measure(cells, (10,), **SETTINGS).table()}
    # A, values 0.15 and 0.85: 0.3 - 1 = -0.7 and 1.7 - 0.
    assert table["group_mc_error", "A"] == pytest.approx(2.4 / 6, abs=1e-15)
    assert table["group_ma_error", "A"] == pytest.approx(1.0 / 6, abs=1e-15)


@pytest.mark.parametrize(
    ("rows", "member"),
    [
        ([], MEMBER),
        ([0], MEMBER),
        ([0, 1, 2, 3, 4, 5], np.zeros_like(MEMBER)),
        ([0, 4], MEMBER),
    ],
    ids=["no rows", "one row", "empty groups", "one group empty"],
)
def test_nothing_to_measure_is_null_and_never_nan(rows, member):
    found = measure(cells(rows=np.array(rows, dtype=int), member=member), (10, 20), **SETTINGS)
    json.dumps(found.summary(), allow_nan=False)
    assert all(r.value is None or np.isfinite(r.value) for r in found.table())
    if len(rows) < 2 or not member.any():
        assert found.by_level[10].mc_error is None
        assert found.by_level[10].worst_group is None


def test_rows_without_weight_count_for_nothing():
    weight = np.array([1.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    one = measure(cells(weight), (10,), **SETTINGS)
    other = measure(cells(rows=np.flatnonzero(weight)), (10,), **SETTINGS)
    np.testing.assert_allclose(one.by_level[10].mc, other.by_level[10].mc, rtol=0, atol=1e-15)
    assert one.loss == pytest.approx(other.loss, abs=1e-15)
    assert one.by_level[10].level_sets == other.by_level[10].level_sets

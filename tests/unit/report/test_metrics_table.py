"""Look-ups in the metrics table against the metrics that it was made from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from report_runs import GROUPS, LEVELS, calibrated, measured, population

from mcspark.report.metrics_table import COLUMNS, MetricsTable, metrics_frame


@pytest.fixture(scope="module")
def metrics():
    return measured(population()[0], intervals=True)


@pytest.fixture(scope="module", params=["in memory", "on disk"])
def table(request, metrics, tmp_path_factory):
    frame = metrics_frame({"before": metrics})
    if request.param == "on disk":
        path = tmp_path_factory.mktemp("metrics") / "part-0.parquet"
        frame.to_parquet(path, index=False)
        frame = pd.read_parquet(path)
    return MetricsTable(frame)


def test_numbers_by_grid(table, metrics):
    assert table.grids == LEVELS
    assert table.grid == 20
    for m in LEVELS:
        assert table.value("before", "mc_error", m) == metrics.by_level[m].mc_error
        assert table.group("before", "mc_error", m) == metrics.by_level[m].worst_group
        assert table.by_grid("before", "noise_floor")[m] == metrics.floors[m].expected
        assert table.value("before", "mc_error_low", m) == metrics.intervals.mc_error[m].low
        assert list(table.by_group("before", "group_mc_error", m)) == list(metrics.by_level[m].mc)
    assert table.value("before", "loss") == metrics.loss
    assert table.value("before", "loss", 10) == metrics.by_level[10].loss
    assert table.value("before", "smece") == metrics.smooth.overall
    assert table.value("before", "absent") is None


def test_gaps_and_rows_are_those_of_the_people(table):
    score, label, member, role = population()
    part = role == 2
    level = np.minimum((score * 20).astype(int), 19)
    people = pd.DataFrame({"level": level, "gap": score - label})[part & member[:, 1]]
    expected = people.groupby("level")["gap"].mean()
    gaps, rows = table.gaps("before").loc[GROUPS[1]], table.level_rows("before").loc[GROUPS[1]]
    pd.testing.assert_series_equal(
        gaps.dropna(), expected, check_names=False, check_index_type=False, rtol=1e-9
    )
    assert rows[rows > 0].to_dict() == people.groupby("level").size().to_dict()
    everyone = table.by_level("before", None)
    assert everyone["rows"].sum() == part.sum()
    assert everyone["share"].sum() == pytest.approx(1, abs=1e-12)


def test_groups_with_too_few_rows_are_not_the_worst(table):
    assert table.worst_first()[-1] == "small"
    errors = table.by_group("before", "group_mc_error", 20)[table.worst_first()[:-1]]
    assert errors.is_monotonic_decreasing


def test_what_is_no_metrics_table_is_refused():
    with pytest.raises(ValueError, match="missing"):
        MetricsTable(pd.DataFrame({"metric": ["loss"]}))
    with pytest.raises(ValueError, match="no metric of any grid"):
        MetricsTable(pd.DataFrame({name: [] for name in COLUMNS}))


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("split", [1], "'split' holds more than text"), ("group", 7, "'group' holds more than text"),
        ("value", None, "'value' holds no numbers"), ("levels", float("inf"), "more than whole numbers"),
        ("level", 0.5, "more than whole numbers"), ("stage", "later", "how many rows were measured"),
    ],
)  # fmt: skip
def test_a_column_of_another_type_is_refused(column, value, words):
    frame = calibrated().metrics.query("stage == 'before'")
    frame = frame.assign(**{column: [value] * len(frame)})
    with pytest.raises(ValueError, match=f"no metrics table: .*{words}"):
        MetricsTable(frame)


def test_stages():
    assert MetricsTable(calibrated().metrics).stages == ("before", "after")

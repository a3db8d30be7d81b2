"""Days, overrides, and the exit code of many days."""

from __future__ import annotations

import pytest

from mcspark.errors import ConfigurationError
from mcspark.pipelines.backfill import Tally, days_between, duration, overrides_of
from mcspark.pipelines.job import Attempt


def test_days_cross_months_and_leap_days_and_keep_how_they_are_written():
    assert days_between("2028-02-28", "2028-03-01") == ["2028-02-28", "2028-02-29", "2028-03-01"]
    assert days_between("20261231", "20270101") == ["20261231", "20270101"]


@pytest.mark.parametrize("day", ["2026-13-01", "2026-8-1", "202681", "２０２６-08-01", "2026-W01-1", ""])
def test_what_is_no_date_is_refused(day):
    with pytest.raises(ConfigurationError, match=r"--(from|to) "):
        days_between(day, "2026-12-31")


def test_the_day_is_set_last_and_stands_for_itself_in_other_keys():
    found = overrides_of("2026-08-01", "ds", ["report.path=r/{ds}.html", "split.seed=3"])
    assert found == [
        "report.path=r/2026-08-01.html",
        "split.seed=3",
        "output.partition.ds='2026-08-01'",
        "scored.partition.ds='2026-08-01'",
    ]
    assert overrides_of("7", "day", ["scored.path=in/{day}"]) == [
        "scored.path=in/7",
        "output.partition.day='7'",
    ]


@pytest.mark.parametrize(
    ("codes", "worst"),
    [([0, 0], 0), ([75, 0], 75), ([75, 5], 5), ([5, 4], 4), ([3, 4, 75], 3), ([3, 2], 2), ([2, 1], 1)],
)
def test_the_worst_code_is_that_of_the_whole(codes, worst):
    tally = Tally("score", "backfill-1", len(codes) + 1)
    for code in codes:
        line = {"status": f"s{code}", "error": "e", "exit_code": code, "run_id": "r"}
        tally.add(f"ds={code}", Attempt("score", "r", exit_code=code), line, 60.0)
    found = tally.summary()
    assert found.get("exit_code", 0) == worst
    assert found["status"] == (f"s{worst}" if worst else "ok")
    assert found["days"]["not_run"] == 1
    assert tally.left == 60.0


def test_time_left_in_words():
    assert [duration(s) for s in (40.2, 750, 7500)] == ["40 s", "12 min", "2 h 05 min"]

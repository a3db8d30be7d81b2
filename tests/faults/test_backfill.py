"""Many days in one session: a day that fails, a driver that is killed, and what is run again."""

from __future__ import annotations

import json
import os
import shutil
import signal

import pandas as pd
import pytest

from .conftest import KEY, content, leavings, read, run_child, run_job

DAYS = [f"2026-08-0{i}" for i in range(1, 5)]
BAD = DAYS[1]


@pytest.fixture
def month(world, people):
    """Four days of input, of which the second has a key twice."""
    table = people[[*KEY, "score", "label", "w"]]
    shutil.rmtree(world.root / "scored")
    for i, day in enumerate(DAYS):
        folder = world.root / "scored" / f"ds={day}"
        folder.mkdir(parents=True)
        rows = table.iloc[: 100 + 10 * i]
        write(folder, pd.concat([rows, rows.iloc[:1]]) if day == BAD else rows)
    return world


def write(folder, table):
    table.to_parquet(folder / "part-0.parquet", index=False)


def mend(world):
    folder = world.root / "scored" / f"ds={BAD}"
    write(folder, pd.read_parquet(folder, partitioning=None).drop_duplicates(KEY))


def arguments(world, *options, job="score", **sections):
    config = str(world.configure(output={"path": str(world.out / "calibrated")}, **sections))
    return ["backfill", "--config", config, "--from", DAYS[0], "--to", DAYS[-1], "--job", job, *options]


def backfill(world, *options, **sections):
    done = run_job(world.spark, *arguments(world, *options, **sections))
    assert done.summary.get("exit_code", 0) == done.exit_code
    return done


def counts(done):
    return [done.summary["days"][name] for name in ("published", "kept", "failed", "not_run")]


def runs(world, day, status="ok"):
    """The runs of a day that ended so, by their manifests."""
    folder = world.out / "calibrated" / f"_ds-{day}_manifests"
    manifests = [json.loads(file.read_text()) for file in folder.glob("*.json")]
    return [one["run_id"] for one in manifests if one["status"] == status]


def test_a_day_that_fails_stops_no_other_and_is_alone_run_again(month):
    done = backfill(month)
    assert (done.exit_code, done.summary["status"], counts(done)) == (3, "contract", [3, 0, 1, 0])
    [failed] = done.summary["failed"]
    assert (failed["partition"], failed["exit_code"]) == (f"ds={BAD}", 3)
    assert BAD in done.summary["error"]
    assert "run the same command again" in done.summary["error"]
    assert not (month.out / "calibrated" / f"ds={BAD}").exists()
    assert runs(month, BAD, "contract") == [failed["run_id"]]
    for i, day in enumerate(DAYS):
        if day != BAD:
            assert len(read(month.out / "calibrated" / f"ds={day}")) == 100 + 10 * i
            assert len(runs(month, day)) == 1
    assert done.log.count("left=") >= 4  # the time left, after each day

    before = content(month.out)
    assert counts(backfill(month)) == [0, 3, 1, 0]
    assert content(month.out) == before
    mend(month)
    done = backfill(month)
    assert (done.exit_code, counts(done)) == (0, [1, 3, 0, 0])
    assert counts(backfill(month)) == [0, 4, 0, 0]
    assert [len(runs(month, day)) for day in DAYS] == [1, 1, 1, 1]


def test_what_was_made_otherwise_or_of_other_rows_is_run_again(month):
    mend(month)
    assert counts(backfill(month)) == [4, 0, 0, 0]
    folder = month.root / "scored" / f"ds={DAYS[2]}"
    write(folder, pd.read_parquet(folder, partitioning=None).assign(score=0.5))
    assert counts(backfill(month)) == [1, 3, 0, 0]
    assert read(month.out / "calibrated" / f"ds={DAYS[2]}")["score"].eq(0.5).all()
    day = {"path": str(month.out / "calibrated"), "partition": {"ds": DAYS[0]}}
    month.ran(output=day, scored={"partition": {"ds": DAYS[0]}}, max_rejected_share=0.5)
    assert counts(backfill(month)) == [1, 3, 0, 0]  # another configuration had taken the place of that day
    shutil.rmtree(month.out / "calibrated" / f"ds={DAYS[3]}")
    assert counts(backfill(month)) == [1, 3, 0, 0]
    torn = max((month.out / "calibrated" / f"_ds-{DAYS[1]}_manifests").glob("*.json"))
    torn.write_text(torn.read_text()[:100])
    assert counts(backfill(month)) == [1, 3, 0, 0]
    model = month.root / "model" / "model.json"
    os.utime(model, (model.stat().st_atime, model.stat().st_mtime + 60))
    assert counts(backfill(month)) == [4, 0, 0, 0]
    assert counts(backfill(month, "--again")) == [4, 0, 0, 0]


def test_a_day_that_a_nightly_run_has_published_is_kept(month):
    mend(month)
    day = {"path": str(month.out / "calibrated"), "partition": {"ds": DAYS[0]}}
    month.ran(output=day, scored={"partition": {"ds": DAYS[0]}})
    assert counts(backfill(month)) == [3, 1, 0, 0]


def test_every_day_is_published_once_though_the_driver_was_killed(month):
    mend(month)
    child = run_child("die-on-the-second-day", arguments(month), master="local[1]")
    assert child.exit_code == -signal.SIGKILL
    assert [len(runs(month, day)) for day in DAYS] == [1, 0, 0, 0]
    assert leavings(month.out)
    first = content(month.out / "calibrated" / f"ds={DAYS[0]}")
    done = backfill(month)
    assert (done.exit_code, counts(done)) == (0, [3, 1, 0, 0])
    assert content(month.out / "calibrated" / f"ds={DAYS[0]}") == first
    assert [len(runs(month, day)) for day in DAYS] == [1, 1, 1, 1]
    assert not leavings(month.out)


def test_each_day_of_an_audit_has_its_own_report(month):
    place = f"report.path={month.root}/reports/{{ds}}.html"
    done = backfill(month, "--set", place, job="audit")
    assert counts(done) == [3, 0, 1, 0]
    pages = sorted(page.stem for page in (month.root / "reports").glob("*.html"))
    assert pages == [day for day in DAYS if day != BAD]
    assert counts(backfill(month, "--set", place, job="audit")) == [0, 3, 1, 0]


def test_a_path_may_name_the_day_instead_of_a_partition(month):
    mend(month)
    for day in DAYS:
        (month.root / "scored" / f"ds={day}").rename(month.root / "scored" / day)
    assert counts(backfill(month, "--set", f"scored.path={month.root}/scored/{{ds}}")) == [4, 0, 0, 0]
    assert len(read(month.out / "calibrated" / f"ds={DAYS[3]}")) == 130


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ("2026-08-31", "2026-08-01", "is after"),
        ("2026-02-30", "2026-08-01", "is a date that does not exist"),
        ("yesterday", "2026-08-01", "is no date"),
        ("20260801", "2026-08-02", "in the same way"),
        ("0001-01-01", "9999-12-31", "of at most 10,000"),
    ],
)
def test_wrong_days_are_refused_before_anything_starts(month, first, last, words):
    config = str(month.configure())
    done = run_job(month.spark, "backfill", "--config", config, "--from", first, "--to", last)
    assert (done.exit_code, done.summary["status"]) == (2, "configuration")
    assert words in done.error

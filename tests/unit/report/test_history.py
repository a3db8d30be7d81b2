"""The history of an output: what is out of the ordinary, what has changed, and files not to be trusted."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from history_runs import BAD_DAY, DAYS, manifest, run_id, write, write_history
from typer.testing import CliRunner

from mcspark.cli.app import app
from mcspark.cli.history import as_text, history_of, write_site
from mcspark.errors import ConfigurationError, ContractError
from mcspark.report.history.job_history import by_job
from mcspark.report.history.limits import LEAST, MEASURES, alarms_of, limits_of
from mcspark.report.history.page import TITLE, History, render_history
from mcspark.report.history.past_run import PastRun, changes
from mcspark.report.plots.history import measure_by_run


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    return write_history(tmp_path_factory.mktemp("past"))


@pytest.fixture(scope="module")
def history(output):
    return history_of([str(output)], output.parent / "site")


@pytest.fixture
def undrawn(monkeypatch):
    """Pages without pictures, for tests of what they say."""
    monkeypatch.setattr("mcspark.report.history.pictures.pictures", lambda job, place: [])


def job(history, name):
    return next(found for found in history.jobs if found.job == name)


def runs(values, key="loss"):
    """Audits with these values of a metric."""
    return [
        PastRun(manifest("audit", day, metrics={"before": {key: v}}))
        for day, v in zip(DAYS, values, strict=False)
    ]


def test_limits_by_hand():
    past = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 100.0]
    found = limits_of([*past, None, 0.0], "both")
    assert found[:LEAST] == [None] * LEAST
    width = 3 * (1 + 6 / 8) * 1.4826 * 2  # median 4.5; absolute deviations 3.5 2.5 1.5 0.5 0.5 1.5 2.5 3.5
    assert (found[8].low, found[8].high) == pytest.approx((4.5 - width, 4.5 + width))
    width = 3 * (1 + 6 / 9) * 1.4826 * 2  # median 5: the outlier has moved neither far
    assert found[9] == found[10]
    assert (found[9].low, found[9].high) == pytest.approx((5 - width, 5 + width))


def test_only_the_bad_side_is_out_of_the_ordinary():
    noise = [0.2 + 0.001 * (i % 3) for i in range(12)]
    loss, auc = (next(m for m in MEASURES if m.key == key) for key in ("loss", "auc"))
    for measure, value, alarm in ((loss, 0.3, True), (loss, 0.1, False), (auc, 0.3, False), (auc, 0.1, True)):
        found = alarms_of(runs([*noise, value], measure.key), [measure])
        assert [a.run.label for a in found] == ([DAYS[12]] if alarm else [])


def test_values_that_vary_by_chance_are_seldom_out_of_the_ordinary():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(400, 40))
    beyond = [
        limit.exceeded_by(value)
        for row in values
        for value, limit in zip(row, limits_of(list(row), "high"), strict=True)
        if limit is not None
    ]
    assert 0 < np.mean(beyond) < 0.01


def test_a_value_that_was_always_the_same_and_is_no_more():
    assert alarms_of(runs([0.2] * 9), MEASURES) == []
    assert [a.run.label for a in alarms_of(runs([0.2] * 9 + [0.2001]), MEASURES)] == [DAYS[9]]


def test_the_day_that_went_wrong_is_told_with_its_limit(history):
    alarms = [a for a in job(history, "audit").alarms if a.run.label == BAD_DAY]
    assert [a.measure.key for a in alarms] == ["error", "smece"]
    text = as_text(history, 30)
    assert re.search(rf"{BAD_DAY}  error that is led with +0\.2\d+  above 0\.", text)


def test_changes_name_the_setting_and_not_the_day(history):
    assert [(run.label, told) for run, told in job(history, "audit").changes] == [
        (DAYS[15], ["split.seed: 1 → 2"])
    ]
    assert (DAYS[10], ["the model: bbbbbbbb → dddddddd"]) in [
        (run.label, told) for run, told in job(history, "score").changes
    ]
    one, two = (
        PastRun(manifest("score", DAYS[0])),
        PastRun(manifest("score", DAYS[1], versions={"spark": "4"})),
    )
    assert len(changes(one, two, most=1)) == 2


def test_a_change_deep_in_a_list_or_at_the_end_of_a_long_text_is_told():
    one, two = (
        PastRun(manifest("audit", day, configuration={"groups": [{"bins": [0, n]}, "é" * 400 + str(n)]}))
        for day, n in ((DAYS[0], 1), (DAYS[1], 2))
    )
    assert [line.partition(":")[0] for line in changes(one, two)] == ["groups.0.bins.1", "groups.1"]


def test_metrics_are_found_beside_an_output_that_was_moved(history):
    last = job(history, "audit").counted[-1]
    assert 0 < last.shares["_hidden"] < 1
    assert all(value is not None for value in last.means)


def test_a_partition_that_was_run_again_counts_once():
    again = manifest("audit", DAYS[3], run_id=run_id("audit", DAYS[29], 9))
    found = [manifest("audit", day) for day in DAYS[:5]]
    [one] = by_job([*map(PastRun, found), PastRun(again)])
    assert [run.label for run in one.runs] == [*DAYS[:4], DAYS[3], DAYS[4]]
    assert len(one.counted) == 5
    assert again["run_id"] in [run.run_id for run in one.counted]


def test_a_failure_that_was_made_good_is_none(history):
    failed = manifest("score", DAYS[0], status="gate", error="no")
    good = manifest("score", DAYS[0], run_id=run_id("score", DAYS[0], 5))
    assert [r.run_id for r in by_job([PastRun(failed)])[0].failed] == [failed["run_id"]]
    assert by_job([PastRun(good), PastRun(failed)])[0].failed == []
    assert [run.label for run in history.failed] == [DAYS[-1]]


def test_a_report_is_linked_where_it_is_that_of_the_run(output, history):
    linked = {run.label: run.report for run in job(history, "audit").runs if run.report}
    assert sorted(linked) == DAYS[25:]
    assert linked[DAYS[25]] == f"../reports/{DAYS[25]}%20of%20%3Cb%3E.html"
    page = output.parent / "reports" / f"{DAYS[25]} of <b>.html"
    page.write_text("<title>Calibration report of another run</title>")
    again = history_of([str(output)], output.parent / "site")
    assert DAYS[25] not in {run.label for run in job(again, "audit").runs if run.report}


def test_the_page_is_escaped_and_the_same_each_time(history):
    page = render_history(history)
    few = History(job(history, "audit").runs[:3])
    assert render_history(few) == render_history(few)
    assert "<script" not in page
    assert "&lt;script&gt;alert(&#39;no key&#39;)" in page
    assert page.count("<svg") == 10
    assert f"<title>{TITLE}</title>" in page
    assert "http" not in page.replace("http://www.w3.org/", "")


def test_the_page_replaces_its_own_and_no_other(output, history, undrawn):
    site = output.parent / "site"
    assert write_site(history, site).read_text() == write_site(history, site).read_text()
    assert [file.name for file in site.iterdir()] == ["index.html"]
    (site / "index.html").write_text("<title>Mine</title>")
    with pytest.raises(ConfigurationError, match="is there and is no calibration history"):
        write_site(history, site)
    (site / "index.html").unlink()


@pytest.mark.parametrize("where", ["whole", "partition", "lake", "nested"])
def test_manifests_are_found_wherever_runs_leave_them(tmp_path, where):
    name = {
        "whole": "_calibrated_manifests",
        "partition": "calibrated/_ds-1_manifests",
        "lake": "_calibrated_runs/_table_manifests",
        "nested": "calibrated/region=x/_ds-1_manifests",
    }[where]
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / name / "a.json").write_text(json.dumps(manifest("audit", DAYS[0])))
    assert len(history_of([str(tmp_path / "calibrated")]).runs) == 1
    assert len(history_of([str(tmp_path / name), str(tmp_path / name / "a.json")]).jobs[0].runs) == 1


BROKEN = [
    b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"schema_version": 1}', b"[" * 100_000,
    json.dumps(manifest("audit", DAYS[0])).encode()[:300],
    json.dumps(manifest("audit", DAYS[0], schema_version=99)).encode(),
    json.dumps(manifest("audit", DAYS[0], run_id="../../etc")).encode(),
]  # fmt: skip


@pytest.mark.parametrize("content", BROKEN, ids=range(len(BROKEN)))
def test_what_is_no_manifest_is_named_and_left_out(tmp_path, content, undrawn):
    good = write(tmp_path, DAYS[0], manifest("audit", DAYS[0]))
    (good.parent / "torn.json").write_bytes(content)
    found = history_of([str(tmp_path / "calibrated")])
    assert len(found.runs) == 1
    [(place, _)] = found.skipped
    assert place.endswith("torn.json")
    assert "torn.json" in render_history(found)
    assert "torn.json" in as_text(found, 5)


FORGED = [
    None,
    "x",
    -1,
    10**400,
    True,
    [],
    [1, 2],
    {},
    {"after": {"by_level": 3}},
    [{"trees": "many"}],
    "\x00" * 400,
]


@pytest.mark.parametrize("value", FORGED, ids=range(len(FORGED)))
def test_no_value_of_a_manifest_can_break_the_page(tmp_path, value):
    keys = (
        "rows", "metrics", "lead", "seconds", "paths", "stages", "method", "inputs", "drift", "error",
    )  # fmt: skip
    for i, key in enumerate(keys):
        write(tmp_path, DAYS[i], manifest("calibrate", DAYS[i], **{key: value}))
    nested = {
        "lead": {"levels": value, "metric": value, "after": value, "noise_floor": value, "blind": value},
        "metrics": {
            "after": {"loss": value, "smece_interval": value, "by_level": {"20": {"interval": value}}}
        },
        "paths": {"metrics": value, "report": value},
        "rows": {"in": value, "rejected": value},
        "seconds": {"read": value},
        "configuration": {"output": {"partition": {"ds": value}, "x": {"": value}}},
    }
    write(tmp_path, DAYS[20], manifest("calibrate", DAYS[20], **nested))
    found = history_of([str(tmp_path / "calibrated")], tmp_path)
    assert len(found.runs) == len(keys) + 1
    assert "could not be drawn" not in render_history(found)
    assert as_text(found, 30)


def test_metrics_that_are_none_leave_the_run_without_shares(tmp_path):
    for day, table in zip(DAYS, (pd.DataFrame({"a": [1]}), b"no parquet"), strict=False):
        plain = manifest("audit", day)
        write(tmp_path, day, plain)
        folder = tmp_path / "calibrated_metrics" / f"run_id={plain['run_id']}"
        folder.mkdir(parents=True)
        file = folder / "part-0.parquet"
        file.write_bytes(table) if isinstance(table, bytes) else table.to_parquet(file)
    found = history_of([str(tmp_path / "calibrated")])
    assert len(found.runs) == len(found.skipped) == 2
    assert all(run.shares == {} for run in found.runs)


def test_nothing_to_judge_and_nothing_at_all(tmp_path):
    write(tmp_path, DAYS[0], manifest("score", DAYS[0], rows=None, status="contract", error="no"))
    page = render_history(history_of([str(tmp_path / "calibrated")]))
    assert "There is nothing to judge" in page
    assert "Too few runs for limits" in render_history(History([PastRun(manifest("score", DAYS[0]))]))
    with pytest.raises(ContractError, match="no run has left a manifest there"):
        history_of([str(tmp_path / "nowhere")])
    only = tmp_path / "torn.json"
    only.write_text("{")
    with pytest.raises(ContractError, match="none of 1 manifests can be read"):
        history_of([str(only)])


def test_the_command_prints_and_writes(output, tmp_path, undrawn):
    done = CliRunner().invoke(app, ["history", str(output), "--html", str(tmp_path / "site"), "--last", "2"])
    assert done.exit_code == 0, done.output
    assert "the last 2 of 30 runs" in done.stdout
    assert (tmp_path / "site" / "index.html").exists()
    assert CliRunner().invoke(app, ["history", str(tmp_path / "none")]).exit_code == 3


def test_groups_are_called_by_the_words_of_the_configuration(monkeypatch):
    monkeypatch.setattr(PastRun, "shares", property(lambda run: run.manifest["shares"]))
    column = {"column": "SEX", "title": "Sex", "labels": {1: "Male", 2: "Female"}}
    told = {"metrics": {"before": {"loss": 0.2}}, "configuration": {"groups": {"columns": [column]}}}
    shares = ({"SEX=1": 0.4, "SEX=2": 0.6}, {"SEX=1": 0.5, "SEX=2": 0.5})
    days = zip(DAYS, shares, strict=False)
    (found,) = by_job([PastRun(manifest("audit", day, **told, shares=share)) for day, share in days])
    assert found.words == {"SEX=1": "Sex: Male", "SEX=2": "Sex: Female"}
    assert [m.name for m in found.measures if m.key.startswith("share of SEX")] == [
        "share of Sex: Male",
        "share of Sex: Female",
    ]


def test_runs_of_one_day_are_told_apart_by_their_time():
    figure = measure_by_run(
        ["2026-08-01 03:00:00", "2026-08-01 15:00:00"], [1.0, 2.0], [None, None], [], "loss"
    )
    (axes,) = figure.axes
    assert [t.get_text() for t in axes.get_xticklabels()] == ["03:00:00", "15:00:00"]
    assert axes.get_xlabel() == "run, 2026-08-01"

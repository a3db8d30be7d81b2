"""What the DAG makes of a job's exit code: another try, none, or a verdict for the gate."""

from __future__ import annotations

import json
import os

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from conftest import DAY

SUMMARY = {
    "status": "ok", "run_id": "score-1", "rows": {"in": 3, "scored": 2, "rejected": 1},
    "metrics": {"before": {"loss": 0.2}}, "paths": {},
}  # fmt: skip


class Events(dict):
    """Airflow's accessors of the events that a task leaves."""

    def __missing__(self, asset):
        self[asset] = type("Event", (), {"extra": {}})()
        return self[asset]


@pytest.fixture
def run(dag, dags, tmp_path, monkeypatch):
    """Run a task of a DAG with a `spark-submit` that prints these lines and ends with this code."""

    def started(task_id, code, *lines):
        submit = tmp_path / "spark-submit"
        printed = "\n".join(f"cat <<'END'\n{line}\nEND" for line in lines)
        submit.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\n{printed}\nexit {code}\n')
        submit.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        chosen = dags[f"{dag.dag_id}_backfill"] if task_id == "backfill" else dag
        task = chosen.get_task(task_id).prepare_for_execution()
        task.evidence = {"metrics": {"after": {"loss": 0.1}}} if task_id == "publish" else None
        params = {
            "config": "c.yaml",
            "spark_connection": "spark_here",
            "jobs": "jobs",
            "again": False,
            "set": "",
        }
        params |= {"first": "2026-08-01", "last": "2026-08-31", "job": "score"}
        context = {"params": params, "ds": DAY, "partition_key": None, "outlet_events": Events()}
        task.render_template_fields(context, dag.get_template_env())
        return task.execute(context), context["outlet_events"]

    return started


@pytest.mark.parametrize("code", [2, 3, 4, 5])
def test_no_second_try_where_it_would_end_the_same_way(run, code):
    line = {"status": "x", "run_id": "r", "error": "what, where and how to mend", "exit_code": code}
    with pytest.raises(AirflowFailException, match=f"exit code {code}, .*: what, where and how to mend"):
        run("publish", code, "24/11/26 WARN a log line", json.dumps(line))


@pytest.mark.parametrize("code", [1, 75, 137, 255])
def test_another_try_after_what_may_pass(run, code):
    with pytest.raises(AirflowException) as caught:
        run("publish", code, json.dumps({"status": "transient", "run_id": "r", "error": "e"}))
    assert not isinstance(caught.value, AirflowFailException)


def test_a_lost_process_is_tried_again(run):
    with pytest.raises(AirflowException, match=r"Error code is: -9\.") as caught:
        run("publish", "$(kill -9 $$)")
    assert not isinstance(caught.value, AirflowFailException)


def test_the_event_of_the_asset_tells_rows_and_metrics(run):
    result, events = run("publish", 0, "a log line", json.dumps(SUMMARY))
    assert result == SUMMARY
    ((asset, event),) = events.items()
    assert asset.name == "multicalibrated_scores"
    assert event.extra == {
        "partition": DAY, "rows": SUMMARY["rows"], "metrics": {"after": {"loss": 0.1}},
    }  # fmt: skip


def test_the_manifest_is_believed_before_the_summary(run, tmp_path):
    manifest = tmp_path / "m.json"
    manifest.write_text(json.dumps({**SUMMARY, "rows": {"in": 5}}))
    line = json.dumps({**SUMMARY, "paths": {"manifest": f"file:{manifest}"}})
    (event,) = run("publish", 0, line)[1].values()
    assert event.extra["rows"] == {"in": 5}
    manifest.unlink()
    (event,) = run("publish", 0, line)[1].values()
    assert event.extra["rows"] == SUMMARY["rows"]


def test_a_failed_gate_is_a_result_of_calibrate_and_ends_the_run_at_the_gate(dag, run):
    line = {"status": "gate", "run_id": "r", "error": "MC error 0.2 is above 0.1", "exit_code": 4}
    result, _ = run("calibrate", 4, json.dumps(line))
    gate = dag.get_task("gate").python_callable
    with pytest.raises(AirflowFailException, match=r"MC error 0\.2 is above 0\.1"):
        gate(result)
    with pytest.raises(AirflowFailException, match="the quality gate is not met"):
        gate(run("calibrate", 4)[0])
    passed = gate(run("calibrate", 0, json.dumps(SUMMARY))[0])
    assert passed == {"calibration": "score-1", "metrics": SUMMARY["metrics"]}


def test_a_backfill_tells_how_many_days_and_has_no_empty_words(run, tmp_path):
    days = {"all": 31, "published": 30, "kept": 1, "failed": 0, "not_run": 0}
    line = json.dumps({"status": "ok", "run_id": "backfill-1", "days": days})
    (event,) = run("backfill", 0, json.dumps(SUMMARY), line)[1].values()
    assert event.extra == {"days": days}
    words = (tmp_path / "arguments").read_text().splitlines()
    assert words[-6:] == ["--from", "2026-08-01", "--to", "2026-08-31", "--job", "score"]
    with pytest.raises(
        AirflowFailException, match="exit code 3, the input breaks its contract: 1 of 31 days"
    ):
        run("backfill", 3, json.dumps({"status": "contract", "error": "1 of 31 days failed"}))


@pytest.mark.parametrize("task_id", ["audit", "publish"])
def test_only_calibrate_hands_its_verdict_on(run, task_id):
    with pytest.raises(AirflowFailException):
        run(task_id, 4)

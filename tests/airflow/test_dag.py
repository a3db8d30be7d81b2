"""The DAG as Airflow sees it: what it imports, in which order it works, what its templates become."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta

import jinja2
import pytest
from airflow.sdk.exceptions import AirflowFailException
from conftest import DAG_ID, DAGS, DAY

PARAMS = {"config": "/etc/a b.yaml", "spark_connection": "spark_here", "jobs": "/opt/mcspark/jobs"}


def test_order_and_limits(dag):
    after = {task.task_id: task.downstream_task_ids for task in dag.tasks}
    assert after == {"audit": {"calibrate"}, "calibrate": {"gate"}, "gate": {"publish"}, "publish": set()}
    assert (dag.max_active_runs, dag.catchup) == (1, False)
    assert all(task.retries >= 1 and task.retry_delay >= timedelta(minutes=1) for task in dag.tasks)
    assert {task.trigger_rule for task in dag.tasks} == {"all_success"}
    assert [a.name for a in dag.get_task("publish").outlets] == ["multicalibrated_scores"]
    assert [task.task_id for task in dag.tasks if task.outlets] == ["publish"]


def test_it_imports_neither_spark_nor_mcspark():
    script = (
        "import sys, importlib.abc\n"
        "class No(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name.split('.')[0] in ('pyspark', 'mcspark'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, No())\n"
        f"sys.path.insert(0, {str(DAGS)!r})\n"
        f"import {DAG_ID}\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def rendered(dag, task_id, **context):
    task = dag.get_task(task_id).prepare_for_execution()
    task.evidence = None  # the result of another task, which there is none of here
    task.render_template_fields({"params": PARAMS, **context}, dag.get_template_env())
    return task


@pytest.mark.parametrize(
    ("task_id", "job", "more"),
    [("audit", "audit", []), ("calibrate", "calibrate", ["output.candidate=true"]), ("publish", "score", [])],
)
def test_rendered_templates(dag, task_id, job, more):
    task = rendered(dag, task_id, partition_key=None, ds=DAY)
    sets = [f"scored.partition.ds={DAY}", f"output.partition.ds={DAY}", *more]
    assert task.application == f"/opt/mcspark/jobs/{job}.py"
    assert task.application_args[:2] == ["--config", "/etc/a b.yaml"]
    assert task.application_args[2:] == [word for value in sets for word in ("--set", value)]
    assert task.name == f"mcspark {job} {DAY}"
    hook = task._get_hook()
    assert hook._connection["master"] == "local[2]"
    command = hook._build_spark_submit_command(task.application)
    assert command[0] == "spark-submit"
    assert command[command.index("--deploy-mode") + 1] == "client"
    assert command[-len(task.application_args) - 1 :] == [task.application, *task.application_args]


@pytest.mark.parametrize("more", [{}, {"again": True, "set": "report.path=r/{ds}.html"}])
def test_a_backfill_hands_its_days_on(dags, more):
    days = {"first": "2026-08-01", "last": "2026-08-31", "job": "audit", "again": False, "set": "", **more}
    task = dags[f"{DAG_ID}_backfill"].get_task("backfill").prepare_for_execution()
    task.render_template_fields({"params": {**PARAMS, **days}}, task.get_template_env())
    assert task.application == "/opt/mcspark/jobs/backfill.py"
    words = ["--config", "/etc/a b.yaml", "--from", "2026-08-01", "--to", "2026-08-31", "--job", "audit"]
    more_words = ["--again", "--set=report.path=r/{ds}.html"] if more else []
    assert [word for word in task.application_args if word] == [*words, *more_words]


def test_a_publication_has_the_page_written(dags, monkeypatch, tmp_path):
    dag = dags[f"{DAG_ID}_history"]
    assert "multicalibrated_scores" in str(dag.timetable.asset_condition)
    mcspark = tmp_path / "mcspark"
    mcspark.write_text('#!/bin/sh\necho "$@"\necho no manifests >&2\ntest "$2" != none\n')
    mcspark.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    page = dag.get_task("page").python_callable
    assert page({"outputs": "a b", "site": "pages"}) == "history a b --html pages"
    with pytest.raises(AirflowFailException, match="exit code 1: no manifests"):
        page({"outputs": "none", "site": "pages"})


def test_a_partition_key_comes_before_the_date(dag):
    task = rendered(dag, "publish", partition_key="2026-11-20", ds=DAY)
    assert "output.partition.ds=2026-11-20" in task.application_args
    assert DAY not in str(task.application_args)


def test_a_run_without_a_partition_is_refused_and_not_named_none(dag):
    with pytest.raises(jinja2.UndefinedError, match="'ds' is undefined"):
        rendered(dag, "audit", partition_key=None)


def test_a_default_for_every_parameter_and_the_jobs_beside_the_dag(dag):
    params = dag.params.dump()
    assert set(params) == {"config", "spark_connection", "jobs"}
    assert params["jobs"] == str(DAGS.parent)
    assert (DAGS.parent / "score.py").is_file()

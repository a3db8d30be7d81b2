"""Multicalibrated scores, one partition a day: audit → calibrate → gate → publish.

Point Airflow's folder of DAGs here, or copy this file there. It needs Airflow 3 with
`apache-airflow-providers-apache-spark` and, first on the workers' PATH, a `spark-submit` whose Python has
mcspark. Nothing of Spark or mcspark is imported here: they live in another environment.

- **audit** measures the partition's scores as they came in, and ends the run if they break their contract;
- **calibrate** learns and proves a calibrator, and writes a candidate beside the output;
- **gate** ends the run if the quality gate is not met on held-out rows: the output stays as it was;
- **publish** scores the whole partition with the new calibrator and replaces it in the output.

Two more DAGs stand beside it: `multicalibration_backfill` runs a job for a range of days in one session, when
somebody asks for it, and `multicalibration_history` writes the page of all runs after each publication.

A job is tried again after exit code 75 (transient) and after an end that nobody planned, such as a lost
worker. A wrong configuration (2), an input that breaks its contract (3), the gate (4) and an output that
another run holds (5) stay what they are however often one tries: these fail at once.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, Asset, ObjectStoragePath, Param, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

if TYPE_CHECKING:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.sdk import Context

PARTITION = "{{ partition_key or ds }}"
GATE = 4
FINAL = {
    2: "the configuration or the environment is wrong",
    3: "the input breaks its contract",
    GATE: "the quality gate is not met",
    5: "another run holds the output",
}
"""Exit codes after which another try ends the same way."""

CALIBRATED_SCORES = Asset("multicalibrated_scores")

log = logging.getLogger(__name__)

_EXIT_CODE = re.compile(r"Error code is: (-?\d+)")


class JobOperator(SparkSubmitOperator):
    """One job of mcspark by ``spark-submit`` in client mode; its summary line is the task's result.

    Parameters
    ----------
    job
        Name of the file in the folder of jobs.
    sets
        Keys of the configuration that this task sets, each ``key=value``; the partition is set besides, but
        for a job with ``options``.
    options
        Options of a job that chooses its partitions by itself; those that become empty are left out.
    gated
        Whether exit code 4 is a result, for the task that judges it, and no failure.
    evidence
        What the asset's event tells beside the partition and the rows.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "_conn_id", "evidence")

    def __init__(
        self,
        *,
        job: str,
        sets: Sequence[str] = (),
        options: Sequence[str] = (),
        gated: bool = False,
        evidence: Any = None,
        **kwargs: Any,
    ) -> None:
        partition = (
            [] if options else [f"scored.partition.ds={PARTITION}", f"output.partition.ds={PARTITION}"]
        )
        overrides = [*partition, *sets]
        super().__init__(
            application=f"{{{{ params.jobs }}}}/{job}.py",
            application_args=[
                "--config", "{{ params.config }}",
                *options,
                *(word for override in overrides for word in ("--set", override)),
            ],
            name=f"mcspark {job}" if options else f"mcspark {job} {PARTITION}",
            conn_id="{{ params.spark_connection }}",
            deploy_mode="client",  # in cluster mode spark-submit hides the job's exit code
            **kwargs,
        )  # fmt: skip
        self.evidence = evidence
        self._gated = gated
        self._summary: dict[str, Any] = {}

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the job; returns its summary, or fails for good where another try would end the same way."""
        self.application_args = [word for word in self.application_args or [] if word]
        try:
            super().execute(context)
        except AirflowException as error:
            found = _EXIT_CODE.search(str(error))
            code = int(found[1]) if found else None
            if code == GATE and self._gated:
                return {"error": FINAL[GATE], **self._summary, "status": "gate"}
            if code in FINAL:
                reason = self._summary.get("error", "the log above says why")
                raise AirflowFailException(f"exit code {code}, {FINAL[code]}: {reason}") from error
            raise
        for asset in self.outlets:
            context["outlet_events"][asset].extra = {**self._published(context), **(self.evidence or {})}
        return self._summary

    def _published(self, context: Context) -> dict[str, Any]:
        """What was published: a partition, or so many days."""
        if "days" in self._summary:
            return {"days": self._summary["days"]}
        partition = context.get("partition_key") or context.get("ds")
        return {"partition": partition, "rows": recorded(self._summary).get("rows")}

    def _get_hook(self) -> SparkSubmitHook:
        hook = super()._get_hook()
        process = hook._process_spark_submit_log
        hook._process_spark_submit_log = lambda lines: process(self._watched(lines))
        return hook

    def _watched(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines of the job, of which the summary is remembered."""
        for line in lines:
            if line.startswith('{"status"'):
                with contextlib.suppress(ValueError):
                    self._summary = json.loads(line)
            yield line


def recorded(summary: dict[str, Any]) -> dict[str, Any]:
    """What the manifest of a run has recorded; the summary where this worker cannot read that store."""
    path = summary.get("paths", {}).get("manifest")
    if path is None:
        return summary
    try:
        return json.loads(ObjectStoragePath(path).read_text())
    except (OSError, ValueError, ImportError) as error:
        log.warning("%s cannot be read here (%s); the summary says the same", path, error)
        return summary


@task
def gate(calibrated: dict[str, Any]) -> dict[str, Any]:
    """Let the candidate pass, or end the run; returns the metrics that it passed with."""
    if calibrated.get("status") == "gate":
        raise AirflowFailException(calibrated["error"])
    manifest = recorded(calibrated)
    return {"calibration": manifest.get("run_id"), "metrics": manifest.get("metrics")}


def _params(**more: Param) -> dict[str, Param]:
    """What every job needs to know, and what one more does."""
    jobs = str(Path(__file__).resolve().parents[1])
    config = "/etc/mcspark/multicalibration.yaml"
    return {
        "config": Param(config, type="string", description="Configuration file."),
        "spark_connection": Param("spark_default", type="string", description="Airflow's Spark connection."),
        "jobs": Param(jobs, type="string", description="Folder of the jobs."),
        **more,
    }


ATTEMPTS = {
    "retries": 2,
    "retry_delay": timedelta(minutes=5),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(hours=1),
}

with DAG(
    "multicalibration",
    description="Calibrated scores for every group, one partition a day",
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    default_args=ATTEMPTS,
    params=_params(),
    tags=["mcspark"],
    doc_md=__doc__,
):
    audit = JobOperator(task_id="audit", job="audit")
    calibrate = JobOperator(task_id="calibrate", job="calibrate", sets=["output.candidate=true"], gated=True)
    passed = gate(calibrate.output)
    publish = JobOperator(task_id="publish", job="score", evidence=passed, outlets=[CALIBRATED_SCORES])
    audit >> calibrate >> passed >> publish


with DAG(
    "multicalibration_backfill",
    description="A job for each day of a range, in one session; tried again, it goes on",
    schedule=None,
    max_active_runs=1,
    default_args=ATTEMPTS,
    params=_params(
        first=Param(type="string", format="date", description="First day."),
        last=Param(type="string", format="date", description="Last day, included."),
        job=Param("score", enum=["score", "audit", "calibrate"], description="The job."),
        again=Param(False, type="boolean", description="Also days that are published already."),
        set=Param("", type="string", description="One key=value; {ds} in it stands for the day."),
    ),
    tags=["mcspark"],
    doc_md=__doc__,
):
    JobOperator(
        task_id="backfill",
        job="backfill",
        options=[
            "--from", "{{ params.first }}", "--to", "{{ params.last }}", "--job", "{{ params.job }}",
            "{{ '--again' if params.again else '' }}", "{{ '--set=' ~ params.set if params.set else '' }}",
        ],
        outlets=[CALIBRATED_SCORES],
    )  # fmt: skip


@task(retries=0)
def page(params: dict[str, str]) -> str:
    """Write the page of all runs; `mcspark` lies beside the `spark-submit` that the workers find."""
    command = ["mcspark", "history", *params["outputs"].split(), "--html", params["site"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    log.info("%s", done.stdout)
    if done.returncode:
        raise AirflowFailException(f"exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout.strip().splitlines()[-1]


with DAG(
    "multicalibration_history",
    description="One page of all runs, after each publication",
    schedule=[CALIBRATED_SCORES],
    max_active_runs=1,
    params={
        "outputs": Param(
            "/srv/mcspark/calibrated", type="string", description="Outputs, set apart by spaces."
        ),
        "site": Param("/srv/mcspark/site", type="string", description="Folder of the page."),
    },
    tags=["mcspark"],
    doc_md=__doc__,
):
    page()

"""Turn ACS person files into a scored table and an attribute table, with the paper's base predictors.

Example: spark-submit jobs/prepare_acs.py --input psam_p06.csv --task income --output data/acs_income
"""

from __future__ import annotations

import json
import time
import uuid
from enum import Enum
from typing import Annotated

import typer

from mcspark.acs.persons import check_inputs
from mcspark.acs.prepare import prepare
from mcspark.errors import McsparkError
from mcspark.runtime.logs import configure_logs
from mcspark.runtime.session import finish, spark_session

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class TaskName(str, Enum):
    """What to predict."""

    income = "income"
    income_class = "income_class"
    travel = "travel"


@app.command(help=__doc__)
def prepare_acs(
    *,
    inputs: Annotated[
        list[str], typer.Option("--input", metavar="FILE...", help="PUMS person files, .csv and .parquet.")
    ],
    task: Annotated[TaskName, typer.Option(help="What to predict.")],
    output: Annotated[str, typer.Option(metavar="DIR", help="Folder of the tables scored and attributes.")],
    train: Annotated[int, typer.Option(help="Rows that train the base predictor and are left out.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Chooses the training rows.")] = 42,
    more_inputs: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="Further files after --input FILE.")
    ] = None,
) -> None:
    """Prepare, print the summary, and end with the exit code of what went wrong."""
    configure_logs(run_id=uuid.uuid4().hex[:12])
    files = [*inputs, *(more_inputs or [])]
    started = time.monotonic()
    spark, code = None, 0
    try:
        check_inputs(files)  # before a JVM starts
        spark = spark_session(f"mcspark prepare_acs {task.value}")
        done = prepare(spark, files, task=task.value, output=output, train=train, seed=seed)
        summary = {**done.summary(), "seconds": round(time.monotonic() - started, 1)}
    except McsparkError as error:
        typer.echo(f"prepare_acs: {error}", err=True)
        summary = {"status": error.status, "task": task.value, "error": str(error)}
        code = error.exit_code
    typer.echo(json.dumps(summary))
    finish(spark, code)


if __name__ == "__main__":
    app()

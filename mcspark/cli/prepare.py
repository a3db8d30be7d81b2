"""The command line of the preparation of ACS person files."""

from __future__ import annotations

import json
import time
import uuid
from enum import Enum
from typing import Annotated

import typer

from mcspark.errors import McsparkError


class TaskName(str, Enum):
    """What to predict."""

    income = "income"
    income_class = "income_class"
    travel = "travel"


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
    """Turn ACS person files into a scored table and an attribute table, with the paper's base predictors.

    Example: prepare-acs --input psam_p06.csv --task income --output data/acs_income
    """
    from mcspark.acs.persons import check_inputs  # noqa: PLC0415
    from mcspark.acs.prepare import prepare  # noqa: PLC0415
    from mcspark.runtime.process.logs import configure_logs  # noqa: PLC0415
    from mcspark.runtime.session import finish, spark_session  # noqa: PLC0415

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

"""The jobs inside ``spark-submit``: options in, exit codes out. A bad configuration starts no session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from mcspark.cli.prepare import prepare_acs

if TYPE_CHECKING:
    from mcspark.config import Config
    from mcspark.pipelines.run import Run

ConfigOption = Annotated[
    str | None,
    typer.Option("--config", help="Configuration file (YAML).", show_default=False),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override one key, such as split.seed=3; repeatable."),
]


BENCHMARK_FOLDER = "mcspark-run/benchmark"


class LogFormat(str, Enum):
    """How log lines look."""

    text = "text"
    json = "json"


LogOption = Annotated[LogFormat, typer.Option("--log-format", help="Log lines for people or for machines.")]


class JobName(str, Enum):
    """A job that reads tables."""

    calibrate = "calibrate"
    score = "score"
    audit = "audit"
    compare = "compare"


NEEDS: Mapping[str, tuple[str, ...]] = {
    "calibrate": ("output", "model"),
    "score": ("output", "model"),
    "audit": ("output",),
    "compare": ("compare.output",),
}
"""Sections that a job cannot do without."""

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__, pretty_exceptions_enable=False)


@app.command()
def calibrate(
    config: ConfigOption = None, set_: SetOption = None, log_format: LogOption = LogFormat.text
) -> None:
    """Learn a calibrator, prove it on held-out rows, and write calibrated scores.

    Without --config it runs on a synthetic population that it makes itself, below mcspark-run/synthetic.
    """
    from mcspark.acs import default_run  # noqa: PLC0415
    from mcspark.pipelines.calibrate import calibrate as body  # noqa: PLC0415
    from mcspark.pipelines.calibrate import engine  # noqa: PLC0415

    given = set_ or ()
    if config is None:
        _run("calibrate", log_format, lambda: default_run.configuration(given), body,
             engine=engine, prepare=default_run.prepare)  # fmt: skip
    _run("calibrate", log_format, _loader(config, given, *NEEDS["calibrate"]), body, engine=engine)


@app.command()
def score(
    config: ConfigOption = None, set_: SetOption = None, log_format: LogOption = LogFormat.text
) -> None:
    """Apply a saved calibrator to a scored table; needs no labels and no LightGBM."""
    from mcspark.pipelines.score import score as body  # noqa: PLC0415

    _run("score", log_format, _loader(config, set_ or (), *NEEDS["score"]), body)


@app.command()
def audit(
    config: ConfigOption = None, set_: SetOption = None, log_format: LogOption = LogFormat.text
) -> None:
    """Measure multicalibration of a scored table; nothing is fitted."""
    from mcspark.pipelines.audit import audit as body  # noqa: PLC0415

    _run("audit", log_format, _loader(config, set_ or (), *NEEDS["audit"]), body)


class DailyJob(str, Enum):
    """A job that can be run for one day after the other."""

    score = "score"
    audit = "audit"
    calibrate = "calibrate"


@app.command()
def backfill(
    *,
    config: ConfigOption = None,
    first: Annotated[str, typer.Option("--from", metavar="DAY", help="First day, such as 2026-08-01.")],
    last: Annotated[str, typer.Option("--to", metavar="DAY", help="Last day, included.")],
    job: Annotated[DailyJob, typer.Option(help="The job.")] = DailyJob.score,
    key: Annotated[str, typer.Option(help="Partition column of the days.")] = "ds",
    again: Annotated[
        bool, typer.Option("--again", help="Also days published by this configuration from this input.")
    ] = False,
    set_: SetOption = None,
    log_format: LogOption = LogFormat.text,
) -> None:
    """Run a job for each day of a range in one session; run again, it goes on with the days that are left.

    A day is set as output.partition.ds and scored.partition.ds; {ds} in a --set stands for it.
    """
    from mcspark.config import load_config  # noqa: PLC0415
    from mcspark.pipelines import audit, backfill, calibrate, score  # noqa: PLC0415
    from mcspark.pipelines.run import new_run_id  # noqa: PLC0415
    from mcspark.runtime.process.logs import configure_logs  # noqa: PLC0415

    bodies = {"score": score.score, "audit": audit.audit, "calibrate": calibrate.calibrate}
    run_id = new_run_id("backfill")
    configure_logs(log_format.value, run_id=run_id)
    backfill.backfill(
        job.value,
        run_id,
        lambda: backfill.days_between(first, last),
        lambda day: load_config(config, backfill.overrides_of(day, key, set_ or ()), needs=NEEDS[job.value]),
        bodies[job.value],
        engine=calibrate.engine if job is DailyJob.calibrate else None,
        again=again,
    )


@app.command()
def compare(
    config: ConfigOption = None, set_: SetOption = None, log_format: LogOption = LogFormat.text
) -> None:
    """Reproduce the paper's comparison of calibrators on labelled tables: tables, figure and results."""
    from mcspark.pipelines.compare import compare as body  # noqa: PLC0415
    from mcspark.pipelines.compare import engine  # noqa: PLC0415

    _run("compare", log_format, _loader(config, set_ or (), *NEEDS["compare"]), body, engine=engine)


@app.command()
def check(
    config: ConfigOption = None,
    set_: SetOption = None,
    job: Annotated[JobName, typer.Option("--for", help="The job to check for.")] = JobName.calibrate,
    log_format: LogOption = LogFormat.text,
) -> None:
    """Check a configuration and the schemas of its tables; no row is read, and nothing is written."""
    from mcspark.pipelines.check import check as body  # noqa: PLC0415

    _run("check", log_format, _loader(config, set_ or (), *NEEDS[job.value]), body(job.value))


@app.command()
def benchmark(
    *,
    rows: Annotated[int, typer.Option(min=10_000, help="Rows to measure on.")] = 1_000_000,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the result here too.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each thing, in turns.")] = 3,
    trees: Annotated[int, typer.Option(min=1, help="Most trees of a fit.")] = 1000,
    folds: Annotated[int, typer.Option(min=0, help="Folds of cells against rows; 0: leave it out.")] = 3,
    source: Annotated[
        list[str] | None, typer.Option(metavar="FILE...", help="ACS person files to expand.")
    ] = None,
    workdir: Annotated[str, typer.Option(help="Folder for the rows and the outputs.")] = BENCHMARK_FOLDER,
    more_sources: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="Further files after --source FILE.")
    ] = None,
    log_format: LogOption = LogFormat.text,
) -> None:
    """Measure what the jobs cost beside reading, joining and writing the same rows, and check their results.

    Without --source it takes the ACS files below MCSPARK_SHARED (../shared), or else a synthetic population.
    """
    from mcspark.benchmark.measure import Options, body, settings  # noqa: PLC0415

    sources = [*(source or []), *(more_sources or [])]
    options = Options(rows, repeats, trees, folds, Options.found(sources), workdir)
    _run("benchmark", log_format, options.configuration, body(options, json_file),
         engine=lambda _: "synapseml", settings=settings())  # fmt: skip


def _loader(config: str | None, overrides: Sequence[str], *needs: str) -> Callable[[], Config]:
    from mcspark.config import load_config  # noqa: PLC0415

    return lambda: load_config(config, tuple(overrides), needs=needs)


def _run(
    job: str,
    log_format: LogFormat,
    load: Callable[[], Config],
    body: Callable[[Run], Mapping[str, Any]],
    **options: Any,
) -> NoReturn:
    from mcspark.pipelines.job import run_job  # noqa: PLC0415
    from mcspark.pipelines.run import new_run_id  # noqa: PLC0415
    from mcspark.runtime.process.logs import configure_logs  # noqa: PLC0415

    run_id = new_run_id(job)
    configure_logs(log_format.value, run_id=run_id)
    run_job(job, run_id, load, body, **options)


app.command(name="prepare-acs")(prepare_acs)

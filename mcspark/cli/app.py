"""The command ``mcspark``: every job through ``spark-submit``, and what needs no Spark at all."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

import mcspark
from mcspark.cli import jobs
from mcspark.cli.files import local_place
from mcspark.cli.launch import SparkOptions, launch
from mcspark.cli.text import Form, Target
from mcspark.config.secrets import redact_uri
from mcspark.errors import ConfigurationError, McsparkError

app = typer.Typer(
    no_args_is_help=True,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    help="Multicalibrated scores for every group. Jobs run through spark-submit: --master, --conf KEY=VALUE "
    "and --submit '...' go to it, everything else to the job. --remote sc://HOST:PORT: over Spark Connect.",
)

_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def _job_command(name: str) -> Callable[..., None]:
    def command(
        context: typer.Context,
        master: Annotated[str | None, typer.Option(help="Spark's master, such as local[4] or yarn.")] = None,
        conf: Annotated[
            list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting of Spark; repeatable.")
        ] = None,
        submit: Annotated[
            str, typer.Option(help="Further options of spark-submit, quoted as one word.")
        ] = "",
        remote: Annotated[
            str | None,
            typer.Option(help="A Spark elsewhere, sc://HOST:PORT, by Spark Connect."),
        ] = None,
    ) -> None:
        inner = typer.main.get_command(jobs.app).commands[name]  # type: ignore[attr-defined]
        if "--help" in context.args:
            typer.echo(_SPARK_HELP)
        # Wrong options are reported here, in a moment, and --help ends here; the job reads them again.
        inner.make_context(f"mcspark {name}", list(context.args))
        with_exit_code(lambda: launch(name, context.args, SparkOptions(master, conf or (), submit, remote)))

    return command


_SPARK_HELP = (
    "Of spark-submit: --master TEXT, --conf KEY=VALUE (repeatable), --submit 'OPTIONS'. Instead of it: "
    "--remote sc://HOST:PORT. Of the job:"
)


def with_exit_code(action: Callable[[], None]) -> None:
    """Run it; an error of the user's is one message and its exit code."""
    try:
        action()
    except McsparkError as error:
        typer.echo(f"mcspark: {redact_uri(str(error))}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:  # whoever read the output has seen enough
        raise
    except OSError as error:  # too long a name, a folder of others, a full disk
        place = error.filename or "the output"
        reason = error.strerror or error
        typer.echo(f"mcspark: {place}: {reason}; check the path and who may use it", err=True)
        sys.exit(ConfigurationError.exit_code)
    except UnicodeEncodeError as error:
        typer.echo(f"mcspark: {_unwritable(error)}", err=True)
        sys.exit(ConfigurationError.exit_code)


def _unwritable(error: UnicodeEncodeError) -> str:
    """Either the name of a file is no text, or the terminal has not all of it."""
    letters = error.object[error.start : error.end]
    if any("\ud800" <= letter <= "\udfff" for letter in letters):
        return f"a name holds {letters!r}, which is no text; rename it"
    return f"the output is {error.encoding}, which has no {letters!r}; set PYTHONIOENCODING=utf-8"


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """Options of the command itself; its help is that of the application."""
    if version:
        typer.echo(f"mcspark {mcspark.__version__}")
        raise typer.Exit


@app.command()
def init(
    scored: Annotated[str, typer.Argument(help="The scored table: Parquet or CSV, a file or a folder.")],
    attributes: Annotated[
        list[str] | None, typer.Argument(help="Tables of group attributes with the same key.")
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="Where to write it.")] = "mcspark.yaml",
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
) -> None:
    """Write a commented configuration guessed from the columns of your tables, and say what was guessed."""
    from mcspark.cli.init import write_configuration  # noqa: PLC0415

    def write() -> None:
        for line in write_configuration(scored, attributes or (), output, force=force):
            typer.echo(line)

    with_exit_code(write)


def _add_jobs(*names: str) -> None:
    known = typer.main.get_command(jobs.app).commands  # type: ignore[attr-defined]
    for name in names:
        summary = (known[name].help or "").split("\n\n")[0]
        app.command(name=name, help=summary, context_settings=_PASSED_ON)(_job_command(name))


_add_jobs("check", "calibrate", "score", "audit", "backfill", "compare", "prepare-acs", "benchmark")


@app.command()
def show(
    path: Annotated[str, typer.Argument(help="A model's folder, a manifest, or a metrics table.")],
    groups: Annotated[int, typer.Option(min=0, help="Groups to list, the worst first.")] = 10,
) -> None:
    """Print a model, a manifest or a metrics table as a readable table."""
    from mcspark.cli.show import shown  # noqa: PLC0415

    with_exit_code(lambda: typer.echo(shown(path, groups)))


@app.command()
def report(
    run: Annotated[str, typer.Argument(help="The manifest of a run, a JSON file.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The HTML file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
) -> None:
    """Draw the report of a run again, from its manifest, its metrics table and its model; needs no Spark."""
    from mcspark.cli.report import draw_again  # noqa: PLC0415

    def draw() -> None:
        for line in draw_again(run, output, force=force):
            typer.echo(line)

    with_exit_code(draw)


@app.command()
def history(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Outputs, folders of manifests, or manifests.")
    ],
    html: Annotated[str | None, typer.Option(metavar="FOLDER", help="Write one page there.")] = None,
    last: Annotated[int, typer.Option(min=1, help="Runs of each job to list.")] = 30,
) -> None:
    """Print what the runs of an output have measured, and what is out of the ordinary; needs no Spark."""
    from mcspark.cli.history import as_text, history_of, write_site  # noqa: PLC0415

    def tell() -> None:
        site = None if html is None else local_place(html)
        found = history_of(paths, site)
        typer.echo(as_text(found, last))
        if site is not None:
            typer.echo(f"\nWritten: {write_site(found, site)}")

    with_exit_code(tell)


@app.command(name="score-local")
def score_local(
    model: Annotated[str, typer.Argument(help="A model's folder on this machine.")],
    source: Annotated[str, typer.Argument(metavar="INPUT", help="A Parquet file, or a folder of them.")],
    target: Annotated[str, typer.Argument(metavar="OUTPUT", help="The Parquet file to write.")],
    score: Annotated[str | None, typer.Option(help="Column of the score; the model's own if absent.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
) -> None:
    """Apply a saved model to a Parquet file on this machine, without Spark or Java."""
    from mcspark.cli.score_local import score_file  # noqa: PLC0415

    with_exit_code(lambda: typer.echo(score_file(model, source, target, score, force=force)))


@app.command()
def explain(
    model: Annotated[str, typer.Argument(help="A model's folder on this machine.")],
    row: Annotated[
        str | None, typer.Option(metavar="JSON", help="Score and attributes, such as '{\"score\": 0.3, …}'.")
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="JSON", help="Key of a row of --input.")] = None,
    source: Annotated[str | None, typer.Option("--input", help="A Parquet file or folder.")] = None,
    score: Annotated[str | None, typer.Option(help="Column of the score; the model's own if absent.")] = None,
    form: Annotated[Form, typer.Option("--format", help="How it is written.")] = Form.text,
) -> None:
    """Say why the score of one row changed, step by step; needs no Spark."""
    from mcspark.cli import explain as explaining  # noqa: PLC0415

    with_exit_code(lambda: typer.echo(explaining.explain(model, row, key, source, score, form)))


@app.command()
def export(
    model: Annotated[str, typer.Argument(help="A model's folder on this machine.")],
    to: Annotated[Target, typer.Option("--to", help="What to write.")],
    dialect: Annotated[str | None, typer.Option(help="Of SQL: duckdb, postgres, spark, …")] = None,
    table: Annotated[str | None, typer.Option(help="Of SQL: the table of scores and attributes.")] = None,
    key: Annotated[list[str] | None, typer.Option(help="Of SQL: a key column; repeatable.")] = None,
    view: Annotated[str | None, typer.Option(help="Of SQL: the view; TABLE_calibrated if absent.")] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="The file; the standard output if absent.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
) -> None:
    """Write a model as SQL (tables and one view over yours), as JSON, or as an ONNX file."""
    from mcspark.cli import export as exporting  # noqa: PLC0415

    def write() -> None:
        for text in exporting.export(model, to, dialect, table, key or [], view, output, force=force):
            typer.echo(text)

    with_exit_code(write)


@app.command()
def diff(
    a: Annotated[str, typer.Argument(help="A model's folder, or the manifest of a run.")],
    b: Annotated[str, typer.Argument(help="The other.")],
    rows: Annotated[
        str | None, typer.Option(metavar="PARQUET", help="People to score with both models.")
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="Column of their score; each model's own if absent.")
    ] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write a page here too.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the page that is there.")] = False,
) -> None:
    """Say what differs between two models or runs: groups, corrections, metrics, and who moves how far."""
    from mcspark.cli import diff as comparing  # noqa: PLC0415

    with_exit_code(lambda: typer.echo(comparing.diff(a, b, rows, score, html, as_json=as_json, force=force)))

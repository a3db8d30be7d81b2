"""What a run leaves behind: tables, metrics, model, manifest, and the summary that names them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from mcspark.config import redact
from mcspark.config.clashes import metrics_table
from mcspark.core.saved import RUN_FILE
from mcspark.core.saved_scores import score_folder
from mcspark.data.leases.lease import Lease
from mcspark.data.leases.ownership import MODEL
from mcspark.data.publishing.sink import Publication, Target
from mcspark.data.publishing.target import described
from mcspark.errors import ConfigurationError
from mcspark.ml.score_models import ScoreModels
from mcspark.pipelines.judging.result import Calibration, ScoreResult
from mcspark.pipelines.judging.segments import segment_rows
from mcspark.pipelines.publishing.record import stage_manifest
from mcspark.pipelines.publishing.reporting import claim_report, stage_report
from mcspark.pipelines.publishing.summary import empty_summary
from mcspark.pipelines.reading.rows import Inputs, output_columns
from mcspark.pipelines.run import Run
from mcspark.report.metrics_table import metric_rows
from mcspark.report.segments import NUMBERS
from mcspark.runtime.files.files import Files

METRICS_SCHEMA = StructType([
    StructField("split", StringType()),
    StructField("stage", StringType()),
    StructField("metric", StringType()),
    StructField("group", StringType()),
    StructField("levels", LongType()),
    StructField("value", DoubleType()),
    StructField("level", LongType()),
])  # fmt: skip
"""Columns of the metrics table; the run is its partition ``run_id``."""

METRICS_BY_SCORE_SCHEMA = StructType([StructField("score", StringType()), *METRICS_SCHEMA.fields])
"""Columns of the metrics table of several scores, which is a table of its own."""

SEGMENTS_SCHEMA = StructType([
    StructField("number", LongType()),
    StructField("segment", StringType()),
    StructField("values", ArrayType(StringType())),
    StructField("own", BooleanType()),
    StructField("reason", StringType()),
    *(StructField(name, LongType()) for name in ("rows", "test_rows", "groups", "trees", "levels")),
    StructField("worst_group", StringType()),
    *(StructField(name, DoubleType()) for name in NUMBERS),
])  # fmt: skip
"""Columns of the table of segments, farthest beyond chance first; the run is its partition ``run_id``."""


def claim(
    run: Run, publication: Publication, target: Target, model: str | None = None, report: str | None = None
) -> None:
    """Refuse, before any work is done, places where something is that the run must not replace.

    Parameters
    ----------
    run : Run
    publication : Publication
    target : Target
    model : str, optional
        The folder of the model, where the job makes one.
    report : str, optional
        The page of the report, where the job makes one.
    """
    _refuse_inputs(run, target, model)
    publication.claim(target, "output")
    publication.claim(target.beside("rejected"), "rejected")
    publication.claim(_of_run(target, _metrics_name(run), run.run_id), "metrics")
    if run.config.segments is not None and model is not None:
        publication.claim(_of_run(target, "segments", run.run_id), "segments")
    if model is not None:
        publication.claim_folder(model, MODEL)
    if report is not None:
        claim_report(run, publication, report)


def _refuse_inputs(run: Run, target: Target, model: str | None) -> None:
    """Refuse to write over an input, by the names that the file systems and the catalog have for them."""
    tables = [target, *map(target.beside, ("rejected", "metrics", "metrics_by_score", "segments"))]
    written = [_qualified(run, path) for path in (*(t.path for t in tables), model) if path]
    for table in run.config.inputs.values():
        path = table.path or described(run.spark, str(table.table)).get("Location")
        read = _qualified(run, path) if path else ""
        for place in written:
            if path and (read == place or f"{read}/".startswith(f"{place}/") or place.startswith(f"{read}/")):
                raise ConfigurationError(
                    f"{place}: would be written, and lies in or around the input "
                    f"{table.path or table.table}; choose a folder of its own"
                )


def _qualified(run: Run, path: str) -> str:
    return Files(run.spark, path).qualify(path).rstrip("/")


def _metrics_name(run: Run) -> str:
    return metrics_table(by_score=run.config.scored.several)


def stage_tables(
    publication: Publication, target: Target, inputs: Inputs, scored: DataFrame
) -> dict[str, str]:
    """Write the scored and the rejected rows aside; returns the paths they will have."""
    output, rejected = scored.select(*output_columns(inputs)), inputs.rejected
    return {
        "output": _staged(publication, target, output, inputs.n_accepted, "output"),
        "rejected": _staged(publication, target.beside("rejected"), rejected, inputs.n_rejected, "rejected"),
    }


def _staged(publication: Publication, target: Target, frame: DataFrame, rows: int, kind: str) -> str:
    if not rows:  # which takes no job
        return publication.stage_rows(target, (), frame.schema, kind=kind)
    return publication.stage(target, frame, rows=rows, kind=kind)


def stage_metrics(run: Run, publication: Publication, target: Target, results: Sequence[ScoreResult]) -> str:
    """Write one row a metric, group and grid aside, as the run's own partition; returns its path."""
    if not run.config.scored.several:
        rows: list[tuple[Any, ...]] = [row for one in results for row in metric_rows(one.metrics)]
        schema = METRICS_SCHEMA
    else:
        rows = [(one.name, *row) for one in results for row in metric_rows(one.metrics)]
        schema = METRICS_BY_SCORE_SCHEMA
    place = _of_run(target, _metrics_name(run), run.run_id)
    return publication.stage_rows(place, rows, schema, kind="metrics")


def stage_measured(
    run: Run,
    publication: Publication,
    target: Target,
    results: Sequence[ScoreResult],
) -> dict[str, str]:
    """Write the metrics aside and, where there are any, the table of segments; returns their paths."""
    paths = {"metrics": stage_metrics(run, publication, target, results)}
    if segments := [segment for result in results for segment in result.segments]:
        place = _of_run(target, "segments", run.run_id)
        rows = [tuple(row[name] for name in SEGMENTS_SCHEMA.names) for row in segment_rows(segments)]
        paths["segments"] = publication.stage_rows(place, rows, SEGMENTS_SCHEMA, kind="segments")
    return paths


def stage_model(
    run: Run,
    publication: Publication,
    target: Target,
    path: str,
    calibration: Calibration,
    metrics: str,
) -> None:
    """Write the model aside, and in its folder which run has made it and where the metrics of that are."""
    origin = {"run_id": run.run_id, "metrics": metrics, "format": target.format}

    def write(folder: str) -> None:
        if not run.config.scored.several:
            calibration.models[0].write().write_to(folder)
            _write_origin(run, folder, origin)
            return
        models = {result.name: result.fitted for result in calibration.results}
        ScoreModels(models, run.config.scored.classes, calibration.projected).write_to(folder)
        for number, result in enumerate(calibration.results):
            _write_origin(run, f"{folder}/{score_folder(number)}", {**origin, "score": result.name})

    publication.stage_folder(path, write)


def _write_origin(run: Run, folder: str, origin: Mapping[str, str]) -> None:
    Files(run.spark, folder).write_text(f"{folder}/{RUN_FILE}", json.dumps(redact(dict(origin))))


def _of_run(target: Target, what: str, run_id: str) -> Target:
    return target.beside(what).with_partition({"run_id": run_id})


def finish_run(
    run: Run,
    publication: Publication,
    target: Target,
    summary: Mapping[str, Any],
    results: Sequence[ScoreResult] = (),
    *,
    report: str | None = None,
    lease: Lease | None = None,
) -> dict[str, Any]:
    """Stage report and manifest beside what is staged already, and publish all of it at once.

    Whatever can fail has been written when the first folder is renamed: a report that cannot be written
    leaves the old output, and a run that says ``ok`` has its manifest.

    Parameters
    ----------
    run : Run
    publication : Publication
    target : Target
    summary : mapping
    results : sequence of ScoreResult
        Of each score; without them there is no report.
    report : str, optional
        The page of the report, where it is not the configuration's.
    lease : Lease, optional
        Of the output; an audit changes no output, and has none.

    Returns
    -------
    dict
        The summary line without its total time.
    """
    if results and run.config.report is not None:
        with run.stage("report", "write the report"):
            page = report or run.config.report.path
            summary = stage_report(run, publication, summary, results, page=page)
    path = stage_manifest(run, publication, target.leaf, summary)
    with run.stage("publish", "put everything in its place"):
        if lease is not None:
            lease.check()
        publication.publish()
    return {**summary, "paths": {**summary["paths"], "manifest": path}}


def publish_empty(
    run: Run, target: Target, inputs: Inputs, lease: Lease, publication: Publication
) -> dict[str, Any]:
    """Replace the old output by an empty one of the same columns: no stale rows, and no failure."""
    with run.stage("write", "write an empty output"):
        nothing = {score.calibrated: F.lit(None).cast("double") for score in inputs.scores}
        empty = inputs.accepted.limit(0).withColumns(nothing)
        paths = stage_tables(publication, target, inputs, empty)
    return finish_run(run, publication, target, empty_summary(run, inputs, paths), lease=lease)

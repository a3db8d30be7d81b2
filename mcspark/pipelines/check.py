"""Checking a configuration against its tables: schemas are read, no row is, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from mcspark.config import Config, required
from mcspark.core.metrics.detectable import rows_for, smallest_error
from mcspark.data.tables import where
from mcspark.ml.cells.groups import GroupSet
from mcspark.pipelines.judging.segments import carried
from mcspark.pipelines.reading.schemas import read_schemas
from mcspark.pipelines.reading.stored import models_at
from mcspark.pipelines.run import Run


def check(job: str) -> Callable[[Run], dict[str, Any]]:
    """The body that checks what a job would meet; ``score`` would take the groups of the saved model.

    Returns
    -------
    callable
        From a run to the summary: what each table is used for, and how small an MC error its rows can show.
    """

    def body(run: Run) -> dict[str, Any]:
        config = run.config
        if job == "score":
            path = required(config.model, "model").path
            fitted = models_at(path, config.scored).models[0].scoring.groups
            families, columns = fitted.signed, fitted.columns
        elif job == "calibrate":
            families, columns, _ = carried(config, GroupSet.from_config(config.groups, config.features))
        else:
            plan = GroupSet.from_config(config.groups)
            families, columns = plan.families, tuple(plan.columns)
        found = read_schemas(run, families, columns, needs_label=job != "score")
        scored = config.scored
        names = [where(scored), *map(where, config.attributes)]
        frames = [found.raw, *found.attributes]
        groups = [found.from_scored, *found.from_tables]
        if found.labels is not None and config.labels is not None:
            names, frames = [*names, where(config.labels)], [*frames, found.labels]
            groups.append(())
        return {
            "status": "ok",
            "run_id": run.run_id,
            "job": job,
            "tables": [
                {
                    "table": name,
                    "columns": len(frame.columns),
                    "key": {k: frame.schema[k].dataType.simpleString() for k in scored.key},
                    "groups": {g: frame.schema[g].dataType.simpleString() for g in used},
                }
                for name, frame, used in zip(names, frames, groups, strict=True)
            ],
            "score": list(scored.all_scores) if scored.several else scored.score,
            "label": scored.label if found.with_label else None,
            "weight": scored.weight,
            "detectable": None if job == "score" else _detectable(config, found.raw, job),
        }

    return body


def _detectable(config: Config, scored: DataFrame, job: str) -> dict[str, Any] | None:
    """The smallest MC error by grid, and rows to measure on that smaller ones need; none for text.

    Only the footers of the files are read, so that labels that are null count, and weights do not.
    """
    if config.scored.format == "csv":
        return None
    rows = scored.select().count()
    measured = round(rows * config.split.test) if job == "calibrate" else rows
    levels = config.evaluation.levels
    if not measured:
        return None
    return {
        "rows": rows,
        "measured": measured,
        "mc_error": {str(m): round(smallest_error(measured, m), 6) for m in levels},
        "measured_for": {str(e): {str(m): rows_for(e, m) for m in levels} for e in (0.01, 0.003, 0.001)},
    }

"""The state of everything that a run reads, taken before it is read: kept in the manifest of the run."""

from __future__ import annotations

from collections.abc import Callable

from mcspark.data.state import place_state, table_state
from mcspark.pipelines.run import Run

JOBS = ("calibrate", "score", "audit")
"""Jobs whose manifest tells it."""


def input_state(run: Run, known: dict[str, str | None] | None = None) -> dict[str, str | None]:
    """By the key of the configuration, the state of each input; None where it cannot be told.

    Parameters
    ----------
    run : Run
    known : dict, optional
        States that need not be found again, and to which those that were found are added: several runs share
        their attribute tables.
    """
    if run.job not in JOBS:
        return {}
    config, spark = run.config, run.spark
    found = {} if known is None else known

    def once(what: str, state: Callable[[], str | None]) -> str | None:
        if what not in found:
            found[what] = state()
        return found[what]

    told = {}
    for place, table in config.inputs.items():
        if place == "labels" and run.job == "score":
            continue  # which does not read them
        told[place] = once(table.model_dump_json(), lambda table=table: table_state(spark, table))  # type: ignore[misc]
    if run.job == "score" and config.model is not None:
        model = config.model.path
        told["model"] = once(model, lambda: place_state(spark, model))
    if run.job == "audit" and (against := config.drift.against):
        told["drift"] = once(against, lambda: place_state(spark, against))
    return told

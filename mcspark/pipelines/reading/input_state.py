"""The state of everything that a run reads, taken before it is read: kept in the manifest of the run."""

from __future__ import annotations

from collections.abc import Callable

from mcspark.config import Config
from mcspark.data.leases.manifest import configuration_hash
from mcspark.data.state import place_state, table_state
from mcspark.pipelines.reading.partitions import Partitions
from mcspark.pipelines.run import Run

JOBS = ("calibrate", "score", "audit")
"""Jobs whose manifest tells it."""


def input_state(run: Run) -> dict[str, str | None]:
    """By the key of the configuration, the state of each input; None where it is unknown.

    Of a window, ``learn.ds=2026-11-26`` is the state of all that is read of that partition.

    What ``run.states`` knows is not found again, and what is found is added to it.
    """
    if run.job not in JOBS:
        return {}
    config, spark = run.config, run.spark
    reported = table_states(run, config)
    if run.job == "score" and config.model is not None:
        model = config.model.path
        reported["model"] = _once(run, model, lambda: place_state(spark, model))
    if run.job == "audit" and (against := config.drift.against):
        reported["drift"] = _once(run, against, lambda: place_state(spark, against))
    if run.job == "calibrate" and config.learn is not None:
        partitions = Partitions(config)
        for partition in partitions.window:
            states = table_states(run, partitions.config_of(partition))
            reported[f"learn.{partition}"] = configuration_hash(states) if all(states.values()) else None
    return reported


def table_states(run: Run, config: Config) -> dict[str, str | None]:
    """The states of the tables of a configuration, each found once by the run."""
    found = {}
    for place, table in config.inputs.items():
        if place == "labels" and run.job == "score":
            continue  # which does not read them
        found[place] = _once(run, table.model_dump_json(), lambda table=table: table_state(run.spark, table))  # type: ignore[misc]
    return found


def _once(run: Run, what: str, state: Callable[[], str | None]) -> str | None:
    if what not in run.states:
        run.states[what] = state()
    return run.states[what]

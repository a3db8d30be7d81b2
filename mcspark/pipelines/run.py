"""One run of a job: its id, its clock and its stages."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone

import structlog
from pyspark.sql import SparkSession

from mcspark.config import Config
from mcspark.engine.choice import engine_of

log = structlog.get_logger(__name__)


@dataclass
class Run:
    """What a job needs to know about itself.

    Parameters
    ----------
    job : str
    run_id : str
    config : Config
    spark : SparkSession
    seconds : dict of str to float
        Wall clock of each stage, filled by :meth:`stage`.
    is_recorded : bool
        Whether the manifest of a run that fails is written already.
    inputs : mapping of str to (str or None)
        The state of each input before the run, see :mod:`mcspark.pipelines.reading.input_state`.
    states : dict of str to (str or None)
        States that were found already, by the table; runs that share their tables may share it.
    """

    job: str
    run_id: str
    config: Config
    spark: SparkSession
    seconds: dict[str, float] = field(default_factory=dict)
    is_recorded: bool = False
    inputs: Mapping[str, str | None] = field(default_factory=dict)
    states: dict[str, str | None] = field(default_factory=dict)

    @property
    def partition(self) -> str | None:
        """The partition that the run is about, as its folder is called."""
        return partition_of(self.config)

    @contextmanager
    def stage(self, name: str, what: str) -> Iterator[dict[str, int]]:
        """Time a stage, log it, and name its Spark jobs so that Spark's pages read like the pipeline.

        Yields a mapping for what the line at its end shall tell, such as ``rows``.
        """
        start = time.monotonic()
        reported: dict[str, int] = {}
        jobs = engine_of(self.spark).jobs_named(f"{self.run_id} {name}", f"{self.job}: {what}")
        with jobs, structlog.contextvars.bound_contextvars(stage=name):
            log.info(what)
            outcome = "stage failed"
            try:
                yield reported
                outcome = "stage done"
            finally:
                seconds = round(time.monotonic() - start, 3)
                self.seconds[name] = round(self.seconds.get(name, 0.0) + seconds, 3)
                log.info(outcome, seconds=seconds, **reported)


def partition_of(config: Config) -> str | None:
    """The partition that a run is about, as its folder is called: ``ds=2026-11-26``."""
    tables = [config.output, config.scored]
    partition = next((table.partition for table in tables if table and table.partition), None)
    return "/".join(f"{key}={value}" for key, value in partition.items()) if partition else None


def new_run_id(job: str) -> str:
    """A run id that sorts by time: ``calibrate-20261127T231501Z-1a2b3c4d``."""
    now = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    return f"{job}-{now}-{uuid.uuid4().hex[:8]}"

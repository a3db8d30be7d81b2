"""Start and end the Spark session of a job.

Spark's configuration belongs to the operator: a job sets only what its results depend on. Master, memory and
partitions come from `spark-submit`, from `spark-defaults.conf`, or, where nobody has said anything, from the
few local defaults of `mcspark.runtime.local`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn

from pyspark.sql import SparkSession

from mcspark.config.remote import remote_address
from mcspark.config.secrets import JAVA_PATTERN
from mcspark.engine.classic import jvm, workers
from mcspark.engine.classic.store import respect_umask
from mcspark.engine.errors import ENGINE_ERRORS, mute_caught_errors
from mcspark.runtime import formats
from mcspark.runtime.jars import add_lightgbm, offer_lightgbm
from mcspark.runtime.java import ensure_java
from mcspark.runtime.local import LOCAL_DEFAULTS, spark_is_configured
from mcspark.runtime.process import streams
from mcspark.runtime.remote import remote_session

# Each of these changes results, not speed.
CORRECTNESS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # folder st=01 stays '01'
    "spark.sql.ansi.enabled": "false",  # what a condition cannot compute is null, not the end of the job
    "spark.sql.caseSensitive": "false",  # names that differ only in case are refused, never picked at random
    "spark.sql.files.ignoreCorruptFiles": "false",  # a file that cannot be read is an error, not fewer rows
    "spark.sql.files.ignoreMissingFiles": "false",
    # The calendar of every writer but Spark 2: a date before 1582, such as 0001-01-01 for none, is no error.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.legacy.javaCharsets": "true",  # any encoding of Java: Spark 4 has but seven of itself
    "spark.shuffle.reduceLocality.enabled": "false",  # which rows share a file depends on no host
    "spark.sql.execution.arrow.pyspark.enabled": "true",  # small tables reach pandas with their own types
}
STOP_SECONDS = 30


def spark_session(
    app_name: str,
    extra: Mapping[str, str] | None = None,
    *,
    engine: str | None = None,
    features: Sequence[str] = (),
) -> SparkSession:
    """The session of this process, made if there is none; over Spark Connect where that is wanted.

    Parameters
    ----------
    app_name
        Name in Spark's own pages and logs.
    extra
        More settings, for tools and tests that are their own operator.
    engine
        What is to train: ``synapseml`` and ``auto`` add its jars, ``auto`` where they can be had; the
        official ``lightgbm`` needs none, nor do scoring and audits.
    features
        Formats and file systems that Spark does not bring, of :data:`mcspark.runtime.features.FEATURES`.

    Raises
    ------
    ConfigurationError
        No Java, or the jars cannot be had that must be there.
    """
    mute_caught_errors()
    settings = {**CORRECTNESS, **(extra or {})}
    if address := remote_address():
        spark = remote_session(app_name, settings, address)
        hide_secrets(spark)
        formats.require_at_server(spark, features)
        if engine in _ADDS:
            _ADDS[engine](spark)  # says or refuses what cannot be had
        return spark
    if not streams.submitted():
        ensure_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if not spark_is_configured():
            settings = {**LOCAL_DEFAULTS, **settings}
    with contextlib.nullcontext() if streams.submitted() else streams.stdout_to_stderr():
        settings |= formats.prepare(features, settings)
    builder = SparkSession.builder.appName(app_name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    with contextlib.nullcontext() if streams.submitted() else streams.stdout_to_stderr():
        spark = builder.getOrCreate()
    jvm.look_up_once()
    workers.fork_from(spark, "mcspark.runtime.daemon")
    streams.keep_stdout_clean()
    respect_umask(spark, _umask())
    hide_secrets(spark)
    if engine in _ADDS:
        _ADDS[engine](spark)
    return spark


_ADDS = {"synapseml": add_lightgbm, "auto": offer_lightgbm}
_HIDDEN_IN_PLANS = "spark.sql.redaction.string.regex"


def hide_secrets(spark: SparkSession) -> None:
    """Let Spark's pages and event log show no secrets of paths; what the operator has set stands."""
    if spark.conf.get(_HIDDEN_IN_PLANS, None) is None:
        spark.conf.set(_HIDDEN_IN_PLANS, JAVA_PATTERN)


def _umask() -> int:
    own = os.umask(0o077)
    os.umask(own)
    return own


@contextlib.contextmanager
def stopped(spark: SparkSession) -> Iterator[SparkSession]:
    """Stop the session when the block ends."""
    try:
        yield spark
    finally:
        spark.stop()


def finish(spark: SparkSession | None, exit_code: int) -> NoReturn:
    """End the process with `exit_code`, whatever threads the libraries have left behind.

    A LightGBM fit leaves a thread in the JVM that keeps a finished `spark-submit` alive for ever, so the JVM
    is told to exit, after everything written to stdout has come out at its other end.

    Parameters
    ----------
    spark
        The session to stop, or None if the job never had one.
    exit_code
        What `spark-submit` (or Python) returns.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if spark is None:
        raise SystemExit(exit_code)
    ends_jvm = streams.submitted() and not remote_address() and not _in_cluster_mode(spark)
    is_stopped = _in_time(spark.stop)
    if is_stopped and not ends_jvm:
        raise SystemExit(exit_code)
    if ends_jvm:
        streams.drain()
        if is_stopped:
            _in_time(lambda: jvm.end(exit_code))
        _in_time(lambda: jvm.halt(exit_code))
    os._exit(exit_code)


def _in_cluster_mode(spark: SparkSession) -> bool:
    """Whether the master of the application ends the JVM, and takes an early exit for a failure."""
    return spark.conf.get("spark.submit.deployMode", "client") == "cluster"


def _in_time(action: Callable[[], object]) -> bool:
    """Run `action` in a thread; whether it came back in time."""

    def run() -> None:
        with contextlib.suppress(*ENGINE_ERRORS, OSError):
            action()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(STOP_SECONDS)
    return not thread.is_alive()

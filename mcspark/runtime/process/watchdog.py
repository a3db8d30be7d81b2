"""A wall-clock limit for work on the cluster that may hang, such as a LightGBM fit."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Iterator

import structlog
from pyspark.sql import SparkSession

from mcspark.engine.choice import engine_of
from mcspark.errors import TransientError

GRACE_SECONDS = 60.0


@contextlib.contextmanager
def time_limit(spark: SparkSession, seconds: float, what: str) -> Iterator[None]:
    """Run the block under a Spark job group that is cancelled when the time is up.

    The cancelled job ends the call that waits for it. After a time-out the session's slots may still be held
    by tasks that do not react: do not try again in the same process.

    Parameters
    ----------
    spark
        The session whose jobs the block runs, from this thread.
    seconds
        The limit, wall clock.
    what
        What is being limited, for the message: "training".

    Raises
    ------
    TransientError
        The time was up before the block ended. Should the block not even react to the cancellation within
        `GRACE_SECONDS`, the process ends with the same exit code.
    """
    engine = engine_of(spark)
    group = f"mcspark-{uuid.uuid4().hex}"
    done = threading.Event()
    expired = threading.Event()

    def watch() -> None:
        if done.wait(seconds):
            return
        expired.set()
        give_up = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < give_up:
            engine.cancel(group)  # again and again: the block may start one job after another
            if done.wait(1.0):
                return
        _end_process(f"{what} did not end within {seconds:g} s, nor when it was cancelled.")

    watcher = threading.Thread(target=watch, name=f"time limit of {what}", daemon=True)
    watcher.start()
    try:
        with engine.jobs_named(group, what, interrupts=True):
            yield
    except Exception as error:
        if not expired.is_set():
            raise
        raise TransientError(
            f"{what} did not end within {seconds:g} s and was cancelled. Try again in a new process; if it "
            "happens again, look for executors that died and for fewer free slots than tasks."
        ) from error
    finally:
        done.set()
        watcher.join()


def _end_process(message: str) -> None:
    """End Python at once; `spark-submit` and the JVM follow."""
    structlog.get_logger().critical(message)
    os._exit(TransientError.exit_code)

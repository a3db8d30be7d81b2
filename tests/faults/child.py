"""Jobs in a process of its own: ``child.py FAULT JOBS.json`` runs each command line of JOBS in one session.

The process prints one line of JSON a job and ends when they are done, or at the moment that FAULT names.
Master and settings come from PYSPARK_SUBMIT_ARGS, as for any driver that plain Python starts.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from mcspark.data.formats.pointer import Pointer
from mcspark.data.publishing.sink import Publication
from mcspark.ml.cells import driver_cells
from mcspark.ml.training import trees
from mcspark.pipelines import job as jobs
from mcspark.pipelines import score
from mcspark.pipelines.reading.rows import CALIBRATED
from mcspark.runtime.files.files import Files


def die() -> None:
    """What the operating system does to a process whose host runs out of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_while_staging() -> None:
    """After the first table has been written aside."""
    stage = Publication.stage

    def staged(self: Publication, *arguments: Any, **keywords: Any) -> None:
        stage(self, *arguments, **keywords)
        die()

    Publication.stage = staged  # type: ignore[method-assign]


def die_while_renaming() -> None:
    """When the new scores are in place and the old rejected rows are still there."""
    move = Files.move

    def moved(self: Files, source: str, target: str) -> None:
        if "_rejected/" in source:
            die()
        move(self, source, target)

    Files.move = moved  # type: ignore[method-assign]


def die_between_pointers() -> None:
    """On an object store, when the first pointer is set and the other is not."""
    set_pointer = Pointer.set

    def is_set(self: Pointer) -> None:
        set_pointer(self)
        die()

    Pointer.set = is_set  # type: ignore[method-assign]


def die_on_the_second_day() -> None:
    """In a backfill: when one day is published, and all of the next one is written aside."""
    publish, published = Publication.publish, []

    def publishing(self: Publication) -> None:
        if published:
            die()
        publish(self)
        published.append(self)

    Publication.publish = publishing  # type: ignore[method-assign]


def kill_busy_executor(delay: float, told: dict[str, Any]) -> None:
    """Kill the process of an executor that has been at work for so many seconds, once."""
    from pyspark.sql import SparkSession

    spark = SparkSession.active()
    port = spark.conf.get("spark.driver.port")
    since: dict[str, float] = {}
    while "killed" not in told:
        summaries = spark.sparkContext._jsc.sc().statusStore().executorList(True)
        for i in range(summaries.size()):
            one = summaries.apply(i)
            if one.id() != "driver" and one.activeTasks() > 0:
                since.setdefault(one.id(), time.monotonic())
                if time.monotonic() - since[one.id()] > delay:
                    told["killed"] = os.kill(process_of(str(one.id()), str(port)), signal.SIGKILL) or one.id()
                    return
            else:
                since.pop(one.id(), None)
        time.sleep(0.05)


def process_of(executor: str, port: str) -> int:
    """The process of an executor of this driver."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if "java" in words[0] and "CoarseGrainedExecutorBackend" in " ".join(words):
            options = dict(pairwise(words))
            if options.get("--executor-id") == executor and options.get("--driver-url", "").endswith(
                f":{port}"
            ):
                return int(folder.name)
    raise LookupError(f"no process of executor {executor}")


TOLD: dict[str, Any] = {}
ENDLESS = 60_000


def lose_executor_while_writing() -> None:
    """An executor dies over slow rows; one task of another fails at its first attempt.

    Cells are made in the cluster, as of many rows.
    """
    driver_cells._FEW = 0
    calibrated_rows = score.calibrated_rows

    def slow(*arguments: Any, **options: Any) -> Any:
        from pyspark import TaskContext
        from pyspark.sql import functions as F

        @F.udf("double")
        def hesitate(value: float, place: int) -> float:
            context = TaskContext.get()
            if place == 0 and context is not None and context.attemptNumber() == 0:
                raise RuntimeError("the first attempt fails on purpose")
            time.sleep(0.002)
            return value

        scored = calibrated_rows(*arguments, **options)
        place = F.pmod(F.xxhash64(*scored.columns), F.lit(500))
        threading.Thread(target=kill_busy_executor, args=(1.0, TOLD), daemon=True).start()
        return scored.withColumn(CALIBRATED, hesitate(F.col(CALIBRATED), place))

    score.calibrated_rows = slow  # type: ignore[attr-defined]


def lose_executor_while_training() -> None:
    """The executor that trains dies in the middle of it, where there are trees without end."""
    without_copies = trees.without_copies

    def doomed(estimator: Any, spark: Any) -> Any:
        told = without_copies(estimator, spark)
        TOLD["barrier"] = told.getUseBarrierExecutionMode()
        if told.getNumIterations() >= ENDLESS:
            threading.Thread(target=kill_busy_executor, args=(3.0, TOLD), daemon=True).start()
        return told

    trees.without_copies = doomed


def lose_executors() -> None:
    lose_executor_while_writing()
    lose_executor_while_training()


def strange_host() -> None:
    """Files for their owner alone, and a libgomp that cannot be loaded: SynapseML's native code needs one."""
    os.umask(0o077)
    folder = tempfile.mkdtemp()
    Path(folder, "libgomp.so.1").write_text("no library")
    os.environ["LD_LIBRARY_PATH"] = folder  # for the JVM that this process starts


FAULTS: dict[str, Callable[[], None]] = {
    "none": lambda: None,
    "die-while-staging": die_while_staging,
    "die-while-renaming": die_while_renaming,
    "die-between-pointers": die_between_pointers,
    "die-on-the-second-day": die_on_the_second_day,
    "lose-executors": lose_executors,
    "strange-host": strange_host,
}


def main(fault: str, file: str) -> None:
    from mcspark.runtime.session import finish

    FAULTS[fault]()
    ended: list[tuple[Any, int]] = []

    def keep_session(spark: Any, code: int) -> None:
        ended.append((spark, code))
        raise SystemExit(code)

    jobs.finish = keep_session  # type: ignore[assignment,attr-defined]
    for job, *arguments in json.loads(Path(file).read_text()):
        script = str(Path(__file__).resolve().parents[2] / "jobs" / f"{job}.py")
        sys.argv = [script, *arguments]
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as error:
            sys.stdout.write(json.dumps({"exit_code": error.code, **TOLD}) + "\n")
            sys.stdout.flush()
            TOLD.clear()
    finish(ended[-1][0], 0)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Tiny jobs that find executors on which a long job would fail: another Python, no native LightGBM."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from pyspark.sql import SparkSession

from mcspark.engine.choice import engine_of
from mcspark.engine.errors import SPARK_ERRORS
from mcspark.errors import ConfigurationError
from mcspark.runtime.tasks.executors import settled_slots, slots

LIBRARIES = {"NumPy": "numpy", "pyarrow": "pyarrow", "pandas": "pandas", "mcspark": "mcspark"}
UNKNOWN = "unknown"
# Long enough for every slot to get its own task, so that no executor is left out.
HOLD_SECONDS = 0.2

_WORKER_FAILURES = (
    re.compile(r"\[PYTHON_VERSION_MISMATCH\][^\n]*"),
    re.compile(r"Cannot run program [^\n]*"),
    re.compile(r"ModuleNotFoundError: [^\n]*"),
)
_HOST = re.compile(r"\(TID \d+\) \(([^ )]+) executor ([^ )]+)\)")
_CAUSE = re.compile(r"(?:Caused by: )?\S*?(\w+(?:Error|Exception): [^\n]*)")

# Loads the library as the first fit would, in whatever process evaluates it.
_LOAD = "java_method('com.microsoft.azure.synapse.ml.lightgbm.LightGBMUtils', 'initializeNativeLibrary')"


def check_executors(spark: SparkSession) -> None:
    """Compare Python, NumPy, pandas, pyarrow and mcspark of every executor with the driver's.

    Executors that come later, to a job that lets them, are not looked at; nor is a driver that runs the tasks
    itself, by its own Python.

    Raises
    ------
    ConfigurationError
        Something is missing or has another version; the message names host and versions.
    """
    if not engine_of(spark).workers_are_the_drivers():
        compare_executors(spark)


def compare_executors(spark: SparkSession, libraries: Mapping[str, str] = LIBRARIES) -> None:
    """:func:`check_executors`, whoever runs the tasks; of these modules, by what people call them."""
    probe = make_probe(HOLD_SECONDS, libraries)
    driver = next(iter(probe(())))
    tasks = settled_slots(spark)
    try:
        found = engine_of(spark).on_partitions(probe, tasks)
    except SPARK_ERRORS as error:
        text = str(error)
        reason = next((match[0] for rule in _WORKER_FAILURES if (match := rule.search(text))), None)
        if reason is None:
            raise
        raise ConfigurationError(
            f"Python does not start on {_where(text)}: {reason.strip()} {_HOW_TO_MEND}"
        ) from error
    problems = differences(driver, found)
    if problems:
        raise ConfigurationError(
            f"{len(problems)} differences between the executors' Python and the driver's: "
            f"{'; '.join(problems[:5])}. {_HOW_TO_MEND}"
        )


def check_lightgbm(spark: SparkSession) -> None:
    """Load the native library of LightGBM on every executor; the jars must be there already.

    Raises
    ------
    ConfigurationError
        It does not load somewhere; the message names the host and the reason.
    """
    tasks = slots(spark)
    try:
        spark.range(0, tasks, 1, tasks).selectExpr(_LOAD).collect()
    except SPARK_ERRORS as error:
        text = str(error)
        causes = [found for found in _CAUSE.findall(text) if not found.startswith(_WRAPPERS)]
        if not causes:
            raise
        raise ConfigurationError(
            f"LightGBM's native library does not load on {_where(text)}: {causes[-1].strip()}. It is for "
            "x86-64 with glibc 2.27 or later, and needs libgomp.so.1 (Debian: libgomp1) and a java.io.tmpdir "
            "from which programs may be started (spark.executor.extraJavaOptions=-Djava.io.tmpdir=FOLDER). "
            "Mend that, or set calibrator.engine: auto, and the official LightGBM trains."
        ) from error


_WRAPPERS = ("SparkException", "InvocationTargetException", "Py4JJavaError")


def _where(text: str) -> str:
    host = _HOST.search(text)
    return f"executor {host[2]} on {host[1]}" if host else "an executor"


_HOW_TO_MEND = (
    "Give the executors the driver's environment: PYSPARK_PYTHON or spark.pyspark.python, a packed "
    "environment with --archives, mcspark itself with --py-files."
)


def differences(driver: Mapping[str, str], found: list[dict[str, str]]) -> list[str]:
    """One line for each host and thing that differs, in a fixed order."""
    lines = {
        f"{name} on {seen['host']} is {seen.get(name) or 'missing'}, the driver has {version}"
        for seen in found
        for name, version in driver.items()
        if name != "host" and not _agree(seen.get(name), version)
    }
    return sorted(lines)


def _agree(seen: str | None, expected: str) -> bool:
    """Whether two versions agree; one that came as plain files (`--py-files`) does not know its own."""
    return seen == expected or (bool(seen) and UNKNOWN in (seen, expected))


def make_probe(
    hold_seconds: float, libraries: Mapping[str, str] = LIBRARIES
) -> Callable[[Iterable[int]], Iterable[dict[str, str]]]:
    """A function that reports what its Python has: host, and a version (or "") by name.

    It is made here, not defined at the top of the module, so that it travels by value: an executor without
    mcspark can still run it.
    """

    def probe(_: Iterable[int]) -> Iterable[dict[str, str]]:
        import importlib
        import platform
        import socket
        import time

        seen = {"host": socket.gethostname(), "Python": ".".join(platform.python_version_tuple()[:2])}
        for label, module in libraries.items():
            try:
                seen[label] = str(getattr(importlib.import_module(module), "__version__", UNKNOWN))
            except Exception:  # a broken library is as bad as a missing one
                seen[label] = ""
        time.sleep(hold_seconds)
        yield seen

    return probe

"""Python workers of a session whose tasks run in the driver: the same Python, so the same libraries."""

from __future__ import annotations

import shutil
import site
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

DAEMON = "spark.python.daemon.module"


def are_the_drivers(spark: SparkSession) -> bool:
    """Whether tasks run in the driver's JVM, and by this very Python."""
    context = spark.sparkContext
    python = shutil.which(context.pythonExec)
    is_local = str(context.master).partition("[")[0] == "local"
    return is_local and python is not None and _same(python, sys.executable)


def fork_from(spark: SparkSession, module: str) -> None:
    """Let a module of mcspark be the daemon that workers are forked from, where they are the driver's.

    A daemon that the operator has chosen stays.
    """
    conf: Any = spark.sparkContext._jsc.sc().conf()
    if are_the_drivers(spark) and _is_installed() and not conf.contains(DAEMON):
        conf.set(DAEMON, module)


def _same(one: str, other: str) -> bool:
    """Two names of an interpreter in one environment; links to it from two environments differ."""
    first, second = Path(one).absolute(), Path(other).absolute()
    return first.parent == second.parent and first.resolve() == second.resolve()


def _is_installed() -> bool:
    """Whether any Python of this environment can import mcspark, wherever it is started."""
    try:
        place = str(Path(str(distribution("mcspark").locate_file(""))).absolute())
    except PackageNotFoundError:
        return False
    return place in {*site.getsitepackages(), site.getusersitepackages()}

"""The JVM of this process: there before its session is, and ended after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyspark
from pyspark import SparkConf, SparkContext


def start(settings: Mapping[str, str] | None = None) -> None:
    """Start the JVM with these settings, or connect to the one that waits for this process.

    One that runs already keeps its settings.
    """
    conf = SparkConf(loadDefaults=False).setAll(list((settings or {}).items()))
    SparkContext._ensure_initialized(conf=conf)


class Platform(NamedTuple):
    """Which build of Spark it is: what jars must be made for.

    Attributes
    ----------
    spark, scala : str
        To the second place, such as ``3.5`` and ``2.12``.
    hadoop : str
        In full, such as ``3.3.4``.
    """

    spark: str
    scala: str
    hadoop: str


def platform() -> Platform:
    """Of the JVM that runs."""
    jvm = running()
    scala = str(jvm.scala.util.Properties.versionNumberString())
    hadoop = str(jvm.org.apache.hadoop.util.VersionInfo.getVersion())
    return Platform(_minor(pyspark.__version__), _minor(scala), hadoop)


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def has_session() -> bool:
    """Whether a session runs in it."""
    return SparkContext._active_spark_context is not None


def settings() -> dict[str, str]:
    """The settings of its session; without one, what a new one would start with."""
    active = SparkContext._active_spark_context
    return dict(active.getConf().getAll()) if active else dict(SparkConf().getAll())


def running() -> Any:
    """The JVM itself, for the modules of this package."""
    jvm: Any = SparkContext._jvm
    assert jvm is not None
    return jvm


def stderr() -> Any:
    """Its stderr, with the methods `print` and `flush` of a stream of Java's."""
    return running().java.lang.System.err


def print_to_stderr() -> None:
    """Let what is printed in it come out on its stderr."""
    running().java.lang.System.setOut(stderr())


def passes_output_on() -> bool:
    """Whether `spark-submit` may still be passing on what this process has printed."""
    threads = running().java.lang.Thread.getAllStackTraces().keySet()
    return any(thread.getName() == "redirect output" for thread in threads)


def end(exit_code: int) -> None:
    """End it, after what it has to do at its end."""
    running().java.lang.System.exit(exit_code)


def halt(exit_code: int) -> None:
    """End it at once."""
    running().java.lang.Runtime.getRuntime().halt(exit_code)

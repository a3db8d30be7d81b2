"""The JVM of this process: there before its session is, and ended after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark import SparkConf, SparkContext


def start(settings: Mapping[str, str] | None = None) -> None:
    """Start the JVM with these settings, or connect to the one that waits for this process.

    One that runs already keeps its settings.
    """
    conf = SparkConf(loadDefaults=False).setAll(list((settings or {}).items()))
    SparkContext._ensure_initialized(conf=conf)


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

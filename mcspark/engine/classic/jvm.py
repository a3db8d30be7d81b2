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
    scala = str(java_class("scala.util.Properties").versionNumberString())
    hadoop = str(java_class("org.apache.hadoop.util.VersionInfo").getVersion())
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
    """The JVM itself."""
    jvm: Any = SparkContext._jvm
    assert jvm is not None
    return jvm


def java_class(name: str, jvm: Any = None) -> Any:
    """The class of this full name, with a dollar before the name of an inner class.

    `jvm.org.apache.hadoop.fs.Path` asks the JVM at each dot whether a class is meant, and each no is a search
    through all jars.
    """
    return getattr(running() if jvm is None else jvm, name)


def look_up_once() -> None:
    """Keep the two classes that PySpark 3.5 looks for, in every imported package, at every expression."""
    jvm = running()
    jvm.functions = java_class("org.apache.spark.sql.functions")
    jvm.PythonUtils = java_class("org.apache.spark.api.python.PythonUtils")


def stderr() -> Any:
    """Its stderr, with the methods `print` and `flush` of a stream of Java's."""
    return java_class("java.lang.System").err


def print_to_stderr() -> None:
    """Let what is printed in it come out on its stderr."""
    java_class("java.lang.System").setOut(stderr())


def passes_output_on() -> bool:
    """Whether `spark-submit` may still be passing on what this process has printed."""
    threads = java_class("java.lang.Thread").getAllStackTraces().keySet()
    return any(thread.getName() == "redirect output" for thread in threads)


def end(exit_code: int) -> None:
    """End it, after what it has to do at its end."""
    java_class("java.lang.System").exit(exit_code)


def halt(exit_code: int) -> None:
    """End it at once."""
    java_class("java.lang.Runtime").getRuntime().halt(exit_code)

"""The JVM of this process: there before its session is, and ended after it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, NamedTuple

import pyspark

try:
    from py4j.java_gateway import JavaClass, JavaPackage
    from pyspark import SparkConf, SparkContext
except ImportError:  # a client of Spark Connect alone, in which nothing below is called
    JavaClass = JavaPackage = SparkConf = SparkContext = object  # type: ignore[assignment,misc]


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
    return Platform(minor(pyspark.__version__), minor(scala), hadoop)


def minor(version: str) -> str:
    """A version to its second place."""
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
    """The class of this full name, with a dollar before the name of an inner class."""
    return reduce(getattr, name.split("."), running() if jvm is None else jvm)


class _KnownPackage(JavaPackage):  # type: ignore[misc]  # py4j has no types
    """A package of Java's that asks for each name once."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaPackage):
            # What has a capital letter is a class that may yet come, with a jar.
            if not name.islower():
                return found
            found = _KnownPackage(found._fqn, self._gateway_client, self._jvm_id)
        if isinstance(found, _KnownPackage | JavaClass):
            setattr(self, name, found)
        return found


def look_up_once() -> None:
    """Keep what PySpark asks the JVM for again at every expression, frame and function.

    The JVM answers `jvm.org.apache.spark.sql.types.StructType` by asking at each dot whether a class is
    meant, and a short name by trying every imported package; each no is a search through all jars.
    """
    jvm = running()
    for name in ("org", "java", "scala", "py4j"):
        setattr(jvm, name, _KnownPackage(name, jvm._gateway_client, jvm._id))
    short = "functions PythonUtils PythonSQLUtils SimplePythonFunction SparkSession SparkSession$"
    for name in short.split():
        found = getattr(jvm, name)
        if isinstance(found, JavaClass):
            setattr(jvm, name, found)


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

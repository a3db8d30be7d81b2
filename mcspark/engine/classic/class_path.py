"""Classes of the JVM: which can be loaded, and how jars are fetched and added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import SparkSession

from mcspark.engine.classic.jvm import running
from mcspark.engine.errors import ENGINE_ERRORS


def missing_classes(names: Sequence[str]) -> list[str]:
    """Those of the classes that the driver cannot load."""
    loader = running().java.lang.Thread.currentThread().getContextClassLoader()
    return [name for name in names if not _loads(loader, name)]


def _loads(loader: Any, name: str) -> bool:
    try:
        loader.loadClass(name)
    except ENGINE_ERRORS:
        return False
    return True


def add_to_driver(jars: Sequence[str]) -> None:
    """Let the driver load classes of these files; sessions that come later too."""
    jvm = running()
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for jar in jars:
        loader.addURL(jvm.java.io.File(jar).toURI().toURL())


@contextmanager
def shared_with_all_threads(spark: SparkSession) -> Iterator[None]:
    """Let every thread of the driver's JVM see the jars that are added to the session within the block.

    `ADD JAR` gives them to a class loader of the session, and that to the one JVM thread that runs it. The
    threads that have read results of tasks before keep the loader above it for ever: where that one takes
    jars, as under `spark-submit` and for any driver that plain Python starts, it gets them too. Where it does
    not, threads that have read no result yet get the loader of the session.
    """
    jvm = running()
    loader: Any = spark._jsparkSession.sharedState().jarClassLoader()
    known = [str(url) for url in loader.getURLs()]
    yield
    parent = loader.getParent()
    try:
        for url in loader.getURLs():
            if str(url) not in known:
                parent.addURL(url)
    except ENGINE_ERRORS:
        jvm.java.lang.Thread.currentThread().setContextClassLoader(loader)
        for thread in jvm.java.lang.Thread.getAllStackTraces().keySet():
            if parent.equals(thread.getContextClassLoader()):
                thread.setContextClassLoader(loader)


def fetch(coordinate: str, excluded: str) -> list[str]:
    """Let Spark's resolver fetch an artefact and what it depends on; the paths of the jars."""
    jvm = running()
    uri = jvm.java.net.URI(f"ivy://{coordinate}" + (f"?exclude={excluded}" if excluded else ""))
    paths = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(uri)
    return [path for path in str(paths.mkString("\n")).splitlines() if path]


@contextmanager
def resolver_output() -> Iterator[list[str]]:
    """Collect what the resolver prints within the block; the list is filled when the block ends."""
    jvm = running()
    heard: list[str] = []
    printer = _printer()
    if printer is None:
        yield heard
        return
    before = printer.printStream()
    ours = jvm.java.io.ByteArrayOutputStream()
    both = jvm.org.apache.commons.io.output.TeeOutputStream(before, ours)
    getattr(printer, "printStream_$eq")(jvm.java.io.PrintStream(both, True))
    try:
        yield heard
    finally:
        with suppress(*ENGINE_ERRORS):
            getattr(printer, "printStream_$eq")(before)
            heard.append(str(ours.toString()))


def _printer() -> Any:
    """Whose stream the resolver prints to, in Spark 3 or in Spark 4; None in one that prints elsewhere."""
    deploy = running().org.apache.spark.deploy
    for printer in (deploy.SparkSubmitUtils, deploy.SparkSubmit):
        with suppress(*ENGINE_ERRORS, TypeError):
            printer.printStream()
            return printer
    return None

"""The SynapseML LightGBM jars: which ones, and the ways a session gets them.

In order: classes that are loadable already (`--packages`, `--jars`, baked into the image), a folder named by
the environment variable `MCSPARK_JARS`, Spark's own resolver. `python -m mcspark.runtime.jars FOLDER` fills
such a folder on a machine that reaches the repository, for clusters that do not.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mcspark.errors import ConfigurationError
from mcspark.runtime.causes import advice, ivy_messages, unresolved

COORDINATE = "com.microsoft.azure:synapseml-lightgbm_2.12:1.1.3"
FOLDER_VARIABLE = "MCSPARK_JARS"
# Training needs four of the 24 artefacts that the coordinate brings; these patterns name the others.
EXCLUDED = (
    "org.*:*",
    "commons-*:*",
    "com.beust:*",
    "com.chuusai:*",
    "com.fasterxml.*:*",
    "com.jcraft:*",
    "com.linkedin.*:*",
)
# The four, by SHA-256 (their file names differ with the tool that fetched them), each with a class in it.
NEEDED = {
    "c4b0acf2f499721f8c76221a46968505b3f59451daccab8c4589848dfd282779": "synapseml-lightgbm_2.12-1.1.3",
    "d300d3a381190c0b8e1c4c7d7f8983c0086107f95466a8614068f3530832529e": "synapseml-core_2.12-1.1.3",
    "f2b1b13172699832594303ab4c04f3bc8fc2d24737e3e8c11d98d69a88c09272": "lightgbmlib-3.3.510",
    "83ace1f85b0db3b6405e1cf4522884a2aebb2119318c5b3030dfdd17b62a8079": "spray-json_2.12-1.3.5",
}
CLASSES = (
    "com.microsoft.azure.synapse.ml.lightgbm.LightGBMRegressor",
    "com.microsoft.azure.synapse.ml.logging.SynapseMLLogging",
    "com.microsoft.ml.lightgbm.lightgbmlib",
    "spray.json.JsonFormat",
)
RESOLVE_SECONDS = 300


def jars_by_checksum(folder: Path) -> dict[str, Path]:
    """The jars of a folder by their SHA-256."""
    return {hashlib.sha256(jar.read_bytes()).hexdigest(): jar for jar in sorted(folder.glob("*.jar"))}


def checked_jars(folder: Path) -> list[Path]:
    """The four jars in `folder`, found by their checksums.

    Raises
    ------
    ConfigurationError
        The folder is not there, or one of the four is missing or altered.
    """
    if not folder.is_dir():
        raise ConfigurationError(f"{FOLDER_VARIABLE}={folder} is not a folder.")
    found = jars_by_checksum(folder)
    missing = [name for digest, name in NEEDED.items() if digest not in found]
    if missing:
        held = len(list(folder.glob("*.jar")))  # more than by checksum, where one is there twice
        raise ConfigurationError(
            f"{folder} holds {held} jars, but {len(missing)} of the {len(NEEDED)} needed are missing or "
            f"have another SHA-256: {', '.join(missing)}. "
            f"Fill it with `python -m mcspark.runtime.jars {folder}`."
        )
    return [found[digest] for digest in NEEDED]


def missing_classes(spark: SparkSession) -> list[str]:
    """Those of the needed classes that the driver cannot load."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    missing = []
    for name in CLASSES:
        try:
            loader.loadClass(name)
        except Py4JError:
            missing.append(name)
    return missing


def add_lightgbm(spark: SparkSession, environ: Mapping[str, str] = os.environ) -> None:
    """Put the LightGBM classes on the class path of the driver and of every executor.

    Raises
    ------
    ConfigurationError
        The jars cannot be had; the message names the ways out.
    """
    if not missing_classes(spark):
        return
    known = _session_jars(spark)
    folder = environ.get(FOLDER_VARIABLE)
    if folder:
        for jar in checked_jars(Path(folder)):
            spark.sql(f'ADD JAR "{jar.resolve().as_uri()}"')
    else:
        _resolve(spark)
    _share_class_loader(spark, known)
    still = missing_classes(spark)
    if still:
        raise ConfigurationError(f"The LightGBM jars were added, but {still[0]} still cannot be loaded.")


def _share_class_loader(spark: SparkSession, known: Sequence[str]) -> None:
    """Let every thread of the driver's JVM see the added jars.

    `ADD JAR` gives them to a class loader of the session, and that to the one JVM thread that runs it. The
    threads that have read results of tasks before keep the loader above it for ever: where that one takes
    jars, as under `spark-submit` and for any driver that plain Python starts, it gets them too. Where it does
    not, threads that have read no result yet get the loader of the session.
    """
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    loader = spark._jsparkSession.sharedState().jarClassLoader()
    parent = loader.getParent()
    try:
        for url in loader.getURLs():
            if str(url) not in known:
                parent.addURL(url)
    except Py4JError:
        jvm.java.lang.Thread.currentThread().setContextClassLoader(loader)
        for thread in jvm.java.lang.Thread.getAllStackTraces().keySet():
            if parent.equals(thread.getContextClassLoader()):
                thread.setContextClassLoader(loader)


def _session_jars(spark: SparkSession) -> list[str]:
    return [str(url) for url in spark._jsparkSession.sharedState().jarClassLoader().getURLs()]


def _resolve(spark: SparkSession) -> None:
    """Let Spark's resolver fetch the jars; a repository that never answers ends after a while."""
    failure: list[Exception] = []

    def resolve() -> None:
        try:
            spark.sql(f'ADD JAR "ivy://{COORDINATE}?exclude={",".join(EXCLUDED)}"')
        except (Py4JError, PySparkException) as error:
            failure.append(error)

    thread = threading.Thread(target=resolve, name="resolve-jars", daemon=True)
    with ivy_messages(spark._jvm) as told:
        thread.start()
        thread.join(RESOLVE_SECONDS)
    if thread.is_alive() or failure:
        silent = TimeoutError(f"no answer in {RESOLVE_SECONDS} s; {advice('no answer in')}")
        what = unresolved(failure[0] if failure else silent, told)
        raise ConfigurationError(
            f"The LightGBM jars ({COORDINATE}) are not on the class path and could not be resolved: {what}. "
            f"Ways out: set {FOLDER_VARIABLE} to a folder filled by `python -m mcspark.runtime.jars FOLDER` "
            "on a machine that reaches the repository; pass those jars with --jars; pass --packages, with "
            "spark.jars.ivySettings naming your own repository; or bake the jars into the image."
        ) from (failure[0] if failure else None)


def main(arguments: list[str]) -> int:
    """Fill a folder with the four jars: `python -m mcspark.runtime.jars FOLDER`."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m mcspark.runtime.jars FOLDER", file=sys.stderr)
        return ConfigurationError.exit_code
    from mcspark.runtime.session import spark_session, stopped  # session builds on this module

    target = Path(arguments[0])
    try:
        with (
            tempfile.TemporaryDirectory() as ivy,
            stopped(
                spark_session("mcspark jars", {"spark.jars.ivy": ivy, "spark.master": "local[1]"})
            ) as spark,
        ):
            _resolve(spark)
            jars = checked_jars(Path(ivy, "jars"))
            target.mkdir(parents=True, exist_ok=True)
            for jar in jars:
                shutil.copy2(jar, target)
                print(target / jar.name)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

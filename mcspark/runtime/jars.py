"""SynapseML's LightGBM in a session: its jars, which ones, and the ways they get there.

In order: classes that are loadable already (`--packages`, `--jars`, baked into the image), a folder named by
the environment variable `MCSPARK_JARS`, Spark's own resolver, Python's client. `python -m
mcspark.runtime.jars FOLDER` fills such a folder on a machine that reaches the repository, for clusters that
do not.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import structlog
from pyspark.sql import SparkSession

from mcspark.engine.choice import engine_of
from mcspark.engine.classic import class_path, jvm
from mcspark.engine.errors import ENGINE_ERRORS
from mcspark.errors import ConfigurationError
from mcspark.runtime.java import ensure_java
from mcspark.runtime.process import streams
from mcspark.runtime.process.causes import advice, telling, unresolved
from mcspark.runtime.repository import RepositoryError, cache_folder, checksum, downloaded, file_stem, kept

log = structlog.get_logger(__name__)

FOR = ("3.5", "2.12")
"""The Spark and the Scala that these jars are for."""
FOLDER_VARIABLE = "MCSPARK_JARS"
_WAYS_OUT = (
    f"set {FOLDER_VARIABLE} to a folder filled by `python -m mcspark.runtime.jars FOLDER` on a machine that "
    "reaches the repository; pass those jars with --jars; pass --packages, with spark.jars.ivySettings "
    "naming your own repository; or bake the jars into the image"
)
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
# The four, by SHA-256 (their file names differ with the tool that fetched them), each with a class in it; the
# first brings the others.
NEEDED = {
    "c4b0acf2f499721f8c76221a46968505b3f59451daccab8c4589848dfd282779": (
        "com.microsoft.azure:synapseml-lightgbm_2.12:1.1.3"
    ),
    "d300d3a381190c0b8e1c4c7d7f8983c0086107f95466a8614068f3530832529e": (
        "com.microsoft.azure:synapseml-core_2.12:1.1.3"
    ),
    "f2b1b13172699832594303ab4c04f3bc8fc2d24737e3e8c11d98d69a88c09272": (
        "com.microsoft.ml.lightgbm:lightgbmlib:3.3.510"
    ),
    "83ace1f85b0db3b6405e1cf4522884a2aebb2119318c5b3030dfdd17b62a8079": "io.spray:spray-json_2.12:1.3.5",
}
CLASSES = (
    "com.microsoft.azure.synapse.ml.lightgbm.LightGBMRegressor",
    "com.microsoft.azure.synapse.ml.logging.SynapseMLLogging",
    "com.microsoft.ml.lightgbm.lightgbmlib",
    "spray.json.JsonFormat",
)
COORDINATE = next(iter(NEEDED.values()))
RESOLVE_SECONDS = 300
_OWN_REPOSITORY = ("spark.jars.ivySettings", "spark.jars.repositories")


def jars_by_checksum(folder: Path) -> dict[str, Path]:
    """The jars of a folder by their SHA-256."""
    return {checksum(jar): jar for jar in sorted(folder.glob("*.jar"))}


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
    missing = [file_stem(name) for digest, name in NEEDED.items() if digest not in found]
    if missing:
        held = len(list(folder.glob("*.jar")))  # more than by checksum, where one is there twice
        raise ConfigurationError(
            f"{folder} holds {held} jars, but {len(missing)} of the {len(NEEDED)} needed are missing or "
            f"have another SHA-256: {', '.join(missing)}. "
            f"Fill it with `python -m mcspark.runtime.jars {folder}`."
        )
    return [found[digest] for digest in NEEDED]


class UnresolvedError(Exception):
    """Why jars could not be fetched, in one line with the mend."""


class MissingError(ConfigurationError):
    """SynapseML cannot be had here; the official LightGBM trains without it.

    Parameters
    ----------
    lacking : str
        What is missing, and the ways to get it.
    """

    def __init__(self, lacking: str) -> None:
        super().__init__(
            f"SynapseML is to train the trees, but {lacking}. Or set calibrator.engine: auto, and the "
            "official LightGBM trains where there is no SynapseML."
        )
        self.lacking = lacking


def lacking(spark: SparkSession) -> str | None:
    """What the driver lacks of SynapseML, and the ways to get it; None where it has all."""
    if engine_of(spark).is_remote:
        return "over Spark Connect nobody can call it: run the job with spark-submit"
    missing = class_path.missing_classes(CLASSES)
    if missing and not _is_pinned():
        build = jvm.platform()
        return (
            f"its classes are not on the class path, and Maven Central has none for Spark {build.spark} with "
            f"Scala {build.scala}: install mcspark[synapseml], and put its maker's jars for that Spark "
            "there, by --jars, or by --packages and --repositories"
        )
    if not _has_package():
        return "its Python package is not installed on the driver: install mcspark[synapseml]"
    return f"its classes are not on the class path. Ways out: {_WAYS_OUT}" if missing else None


def _has_package() -> bool:
    return find_spec("synapse") is not None


def _is_pinned() -> bool:
    """Whether the jars named here are for the running Spark."""
    return jvm.platform()[:2] == FOR


def fetched(coordinate: str, excluded: str, jars: Mapping[str, str]) -> list[str]:
    """Jars by Spark's resolver, or by Python's client where Java reaches no repository.

    Where the operator has named a repository, no other one is asked.

    Parameters
    ----------
    coordinate, excluded : str
        Of an artefact, and of what it would bring that is not needed.
    jars : mapping of str to str
        The coordinates of all that is needed, by SHA-256.

    Raises
    ------
    UnresolvedError
        They cannot be had.
    """
    if any(jvm.settings().get(name) for name in _OWN_REPOSITORY):
        return _resolved(coordinate, excluded)
    folder = cache_folder()
    found = kept(jars, folder)  # by an earlier session, for which Java could not either
    if found is None:
        try:
            return _resolved(coordinate, excluded)
        except UnresolvedError as error:
            try:
                found = downloaded(jars, folder)
            except RepositoryError as other:
                raise UnresolvedError(f"{error}; nor by Python ({other})") from error
            log.info("jars fetched by Python, since Java could not", reason=str(error), jars=len(found))
    return [str(path) for path in found]


def _resolved(coordinate: str, excluded: str) -> list[str]:
    """By Spark's resolver; a repository that never answers ends after a while."""
    found: list[str] = []
    failure: list[Exception] = []

    def fetch() -> None:
        try:
            found.extend(class_path.fetch(coordinate, excluded))
        except ENGINE_ERRORS as error:
            failure.append(error)

    thread = threading.Thread(target=fetch, name="resolve-jars", daemon=True)
    with class_path.resolver_output() as heard:
        thread.start()
        thread.join(RESOLVE_SECONDS)
    if thread.is_alive() or failure:
        silent = TimeoutError(f"no answer in {RESOLVE_SECONDS} s; {advice('no answer in')}")
        error = failure[0] if failure else silent
        raise UnresolvedError(unresolved(error, telling("".join(heard)))) from error
    return found


def offer_lightgbm(spark: SparkSession, environ: Mapping[str, str] = os.environ) -> None:
    """Put SynapseML's classes on the class path where they can be had; where not, say why in the log.

    Raises
    ------
    ConfigurationError
        The folder that is to hold the jars lacks some, or they are altered.
    """
    try:
        add_lightgbm(spark, environ)
    except MissingError as error:
        # That this Spark has no SynapseML is as it should be; that its jars cannot be fetched is not.
        say = log.warning if isinstance(error.__cause__, UnresolvedError) else log.info
        say("no SynapseML here: the official LightGBM trains", reason=error.lacking)


def add_lightgbm(spark: SparkSession, environ: Mapping[str, str] = os.environ) -> None:
    """Put SynapseML's classes on the class path of the driver and of every executor.

    Raises
    ------
    MissingError
        SynapseML cannot be had; the message names the ways out.
    ConfigurationError
        The folder that is to hold the jars lacks some, or they are altered.
    """
    if (found := lacking(spark)) is None:
        return
    if engine_of(spark).is_remote or not (_has_package() and _is_pinned()):
        raise MissingError(found)
    folder = environ.get(FOLDER_VARIABLE)
    jars = checked_jars(Path(folder)) if folder else fetched_jars()
    with class_path.shared_with_all_threads(spark):
        for jar in jars:
            spark.sql(f'ADD JAR "{jar.resolve().as_uri()}"')
    if still := class_path.missing_classes(CLASSES):
        raise ConfigurationError(f"The LightGBM jars were added, but {still[0]} still cannot be loaded.")


def fetched_jars() -> list[Path]:
    """The LightGBM jars, fetched from a repository.

    Raises
    ------
    MissingError
        They cannot be had; the message names the ways out.
    """
    try:
        return [Path(path) for path in fetched(COORDINATE, ",".join(EXCLUDED), NEEDED)]
    except UnresolvedError as error:
        raise MissingError(
            f"its jars ({COORDINATE}) are not on the class path and could not be resolved: {error}. "
            f"Ways out: {_WAYS_OUT}"
        ) from error


def main(arguments: list[str]) -> int:
    """Fill a folder with the four jars: `python -m mcspark.runtime.jars FOLDER`."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m mcspark.runtime.jars FOLDER", file=sys.stderr)
        return ConfigurationError.exit_code
    target = Path(arguments[0])
    try:
        ensure_java()
        with tempfile.TemporaryDirectory() as ivy, streams.stdout_to_stderr():
            jvm.start({"spark.jars.ivy": ivy})
            jars = checked_jars(fetched_jars()[0].parent)
            target.mkdir(parents=True, exist_ok=True)
            copies = [shutil.copy2(jar, target) for jar in jars]
        for copy in copies:
            print(copy)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

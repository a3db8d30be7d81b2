"""What Spark lacks for some formats and file systems, Delta Lake, Iceberg and S3, and how a session gets it.

The classes must be there before the session is: Delta's rules are part of it. A Spark that is spoken to by
Spark Connect must have been started with them. In order: classes that are
loadable already (`--packages`, `--jars`, baked into the image), the folder named by `MCSPARK_JARS`, Spark's
own resolver, Python's client. `python -m mcspark.runtime.formats FOLDER delta iceberg s3` fills such a
folder.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from mcspark.engine.classic import class_path, jvm
from mcspark.errors import ConfigurationError
from mcspark.runtime.features import FEATURES, Build
from mcspark.runtime.jars import FOLDER_VARIABLE, UnresolvedError, fetched, jars_by_checksum
from mcspark.runtime.java import ensure_java
from mcspark.runtime.process import streams
from mcspark.runtime.repository import file_stem

_EXTENSIONS = "spark.sql.extensions"
_SERVER_SCALA = "2.13"  # of every Spark that speaks to a client of Spark 4


def prepare(
    names: Sequence[str], settings: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Settings of a session with these features; the JVM runs from here on, with their classes.

    Parameters
    ----------
    names : sequence of str
        Of :data:`mcspark.runtime.features.FEATURES`.
    settings : mapping
        What the session will be made with besides; a new JVM gets them too.
    environ : mapping

    Raises
    ------
    ConfigurationError
        The jars cannot be had, or a session is there already without the rules that a format needs.
    """
    if not names:
        return {}
    features = [FEATURES[name] for name in names]
    # A JVM that is started here must know its memory; one that runs has its settings, submitted or not.
    jvm.start(settings)
    given = jvm.settings()
    jars = _added_jars(names, environ)
    if jvm.has_session():
        _refuse_unprepared(names, given)
        return {}
    found = {key: value for f in features for key, value in f.settings.items() if key not in given}
    if jars:
        found["spark.jars"] = ",".join([*filter(None, [given.get("spark.jars")]), *jars])
    rules = [*filter(None, given.get(_EXTENSIONS, "").split(","))]
    rules += [f.extension for f in features if f.extension and f.extension not in rules]
    return found | ({_EXTENSIONS: ",".join(rules)} if rules else {})


def _refuse_unprepared(names: Sequence[str], given: Mapping[str, str]) -> None:
    for name in names:
        rule = FEATURES[name].extension
        if rule and rule not in given.get(_EXTENSIONS, ""):
            raise ConfigurationError(
                f"This session was made without {_EXTENSIONS}={rule}, which {name} tables need; "
                "make it with that setting, or let mcspark make it"
            )


def require_at_server(spark: SparkSession, names: Sequence[str]) -> None:
    """Refuse a session of Spark Connect whose server lacks what these features need.

    Parameters
    ----------
    spark : SparkSession
    names : sequence of str
        Of :data:`mcspark.runtime.features.FEATURES`.

    Raises
    ------
    ConfigurationError
        Classes are not on the server's class path, or a setting is missing with which it must start.
    """
    for name in names:
        if name == "s3":  # whose paths are refused by their scheme
            continue
        feature = FEATURES[name]
        rules = str(spark.conf.get(_EXTENSIONS, None) or "").split(",")
        wanted = {_EXTENSIONS: feature.extension} if feature.extension not in ["", *rules] else {}
        wanted |= {key: value for key, value in feature.settings.items() if not spark.conf.get(key, None)}
        if wanted or not _loads(spark, feature.probe):
            build = feature.builds.get(f"Spark {jvm.minor(spark.version)} with Scala {_SERVER_SCALA}")
            jars = f"--packages {build.coordinate}" if build else f"{name}'s jars for Spark {spark.version}"
            line = " ".join([jars, *(f"--conf {key}={value}" for key, value in wanted.items())])
            raise ConfigurationError(
                f"the Spark Connect server was started without what {name} tables need, and it cannot be "
                f"added from here; start it with {line}"
            )


def _loads(spark: SparkSession, name: str) -> bool:
    """Whether the planner of a session that has no JVM here knows a class of Java's."""
    try:
        return bool(spark.sql(f"SELECT java_method('{name}', 'none')").schema)
    except AnalysisException as error:  # it has no such method, or another planner not this function
        return "UNEXPECTED_CLASS_TYPE" not in str(error)


def _added_jars(names: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The jars that were missing; the driver can load them now."""
    folder = environ.get(FOLDER_VARIABLE)
    added: list[str] = []
    for name in names:
        feature = FEATURES[name]
        if not class_path.missing_classes([feature.probe]):
            continue
        jars = [str(jar.resolve()) for jar in checked_jars(Path(folder), name)] if folder else _resolved(name)
        class_path.add_to_driver(jars)
        if class_path.missing_classes([feature.probe]):
            raise ConfigurationError(f"The jars of {name} were added, but {feature.probe} cannot be loaded.")
        added += jars
    return added


def checked_jars(folder: Path, name: str) -> list[Path]:
    """The jars of a feature in a folder, found by their checksums.

    Raises
    ------
    ConfigurationError
        One is missing or altered.
    """
    wanted, found = build_of(name).jars, jars_by_checksum(folder)
    missing = [file_stem(jar) for digest, jar in wanted.items() if digest not in found]
    if missing:
        raise ConfigurationError(
            f"{FOLDER_VARIABLE}={folder} lacks {', '.join(missing)}, or they have another SHA-256; "
            f"fill it with `python -m mcspark.runtime.formats {folder} {name}`"
        )
    return [found[digest] for digest in wanted]


def build_of(name: str) -> Build:
    """The jars of a feature for the Spark that runs.

    Raises
    ------
    ConfigurationError
        None are known.
    """
    feature, platform = FEATURES[name], jvm.platform()
    if (found := feature.build_for(platform)) is not None:
        return found
    raise ConfigurationError(
        f"{name} is not on the class path, and mcspark knows no jars of it for Spark {platform.spark} with "
        f"Scala {platform.scala} and Hadoop {platform.hadoop}, but for {' and '.join(feature.builds)}; put "
        "yours there, by --packages or --jars"
    )


def _resolved(name: str) -> list[str]:
    build = build_of(name)
    try:
        return fetched(build.coordinate, FEATURES[name].excluded, build.jars)
    except UnresolvedError as error:
        raise ConfigurationError(
            f"{build.coordinate} is not on the class path and could not be resolved: {error}. Ways out: "
            f"--packages {build.coordinate} with spark.jars.ivySettings for your own repository; --jars; "
            f"or {FOLDER_VARIABLE}, a folder filled by `python -m mcspark.runtime.formats`."
        ) from error


def main(arguments: list[str]) -> int:
    """Fill a folder: `python -m mcspark.runtime.formats FOLDER delta iceberg s3`."""
    folder, *names = arguments or [""]
    if not names or not set(names) <= set(FEATURES):
        print(f"usage: python -m mcspark.runtime.formats FOLDER {' '.join(FEATURES)}", file=sys.stderr)
        return ConfigurationError.exit_code
    try:
        ensure_java()
        with streams.stdout_to_stderr():
            jvm.start()
        for name in names:
            Path(folder).mkdir(parents=True, exist_ok=True)
            for jar in _resolved(name):
                print(shutil.copy2(jar, folder))
            checked_jars(Path(folder), name)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

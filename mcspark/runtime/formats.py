"""What Spark lacks for some formats and file systems, Delta Lake, Iceberg and S3, and how a session gets it.

The classes must be there before the session is: Delta's rules are part of it. In order: classes that are
loadable already (`--packages`, `--jars`, baked into the image), the folder named by `MCSPARK_JARS`, Spark's
own resolver. `python -m mcspark.runtime.formats FOLDER delta iceberg s3` fills such a folder.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcspark.config import AttributeTable, Config, Output, ScoredTable
from mcspark.engine.classic import class_path, jvm
from mcspark.errors import ConfigurationError
from mcspark.runtime import streams
from mcspark.runtime.jars import FOLDER_VARIABLE, UnresolvedError, fetched, jars_by_checksum
from mcspark.runtime.java import ensure_java

_EXTENSIONS = "spark.sql.extensions"
_S3 = re.compile(r"s3a?://", re.IGNORECASE)


@dataclass(frozen=True)
class Feature:
    """One thing that Spark does not bring.

    Parameters
    ----------
    coordinate : str
        Of the artefact, for Spark's resolver.
    excluded : str
        What it would bring and Spark has.
    jars : mapping of str to str
        The jars, by SHA-256.
    probe : str
        A class that is loadable where the jars are.
    extension : str
        Rules that the session must have; empty for none.
    settings : mapping of str to str
        Settings that it needs, unless the operator has set them.
    """

    coordinate: str
    excluded: str
    jars: Mapping[str, str]
    probe: str
    extension: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


FEATURES = {
    "delta": Feature(
        "io.delta:delta-spark_2.12:3.3.3",
        "org.antlr:*",
        {
            "4912bf902a1c453aba3bd838ff212dedd357155212f9bb37a6b47d97f2827ebc": "delta-spark_2.12-3.3.3",
            "45ad193053fd30cebe6d9ab1889873cde39b223a0f210e00ebee8b6642476901": "delta-storage-3.3.3",
        },
        "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "io.delta.sql.DeltaSparkSessionExtension",
        {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"},
    ),
    "iceberg": Feature(
        "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.1",
        "",
        {
            "39ea09e6c03550a300b9d9ab498949836d2d434e441da4c12a943a086e396940": (
                "iceberg-spark-runtime-3.5_2.12-1.10.1"
            ),
        },
        "org.apache.iceberg.spark.SparkCatalog",
    ),
    "s3": Feature(
        "org.apache.hadoop:hadoop-aws:3.3.4",
        "org.wildfly.openssl:*",
        {
            "53f9ae03c681a30a50aa17524bd9790ab596b28481858e54efd989a826ed3a4a": "hadoop-aws-3.3.4",
            "873fe7cf495126619997bec21c44de5d992544aea7e632fdc77adb1a0915bae5": (
                "aws-java-sdk-bundle-1.12.262"
            ),
        },
        "org.apache.hadoop.fs.s3a.S3AFileSystem",
    ),
}
"""By name; Delta and Iceberg for Spark 3.5 and Scala 2.12, S3 for the Hadoop 3.3.4 of Spark 3.5."""


def features_of(config: Config) -> tuple[str, ...]:
    """The features that the tables and paths of a configuration need."""
    tables: list[ScoredTable | AttributeTable | Output] = [config.scored, *config.attributes]
    for task in config.compare.tasks:
        tables += [task.scored, *task.attributes]
    tables += [config.output] if config.output else []
    formats = {table.format for table in tables}
    places = [*(table.path for table in tables), config.drift.against]
    sections = (config.model, config.report, config.compare.output)
    places += [section.path for section in sections if section is not None]
    s3 = {"s3"} if any(place and _S3.match(place) for place in places) else set()
    return tuple(name for name in FEATURES if name in formats | s3)


def prepare(
    names: Sequence[str], settings: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Settings of a session with these features; the JVM runs from here on, with their classes.

    Parameters
    ----------
    names : sequence of str
        Of :data:`FEATURES`.
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


def _added_jars(names: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The jars that were missing; the driver can load them now."""
    folder = environ.get(FOLDER_VARIABLE)
    added: list[str] = []
    for name in names:
        feature = FEATURES[name]
        if not class_path.missing_classes([feature.probe]):
            continue
        jars = [str(jar.resolve()) for jar in checked_jars(Path(folder), name)] if folder else []
        jars = jars or _resolved(feature)
        class_path.add_to_driver(jars)
        if class_path.missing_classes([feature.probe]):
            raise ConfigurationError(f"{feature.coordinate} was added, but {feature.probe} cannot be loaded.")
        added += jars
    return added


def checked_jars(folder: Path, name: str) -> list[Path]:
    """The jars of a feature in a folder, found by their checksums.

    Raises
    ------
    ConfigurationError
        One is missing or altered.
    """
    wanted, found = FEATURES[name].jars, jars_by_checksum(folder)
    missing = [name for digest, name in wanted.items() if digest not in found]
    if missing:
        raise ConfigurationError(
            f"{FOLDER_VARIABLE}={folder} lacks {', '.join(missing)}, or they have another SHA-256; "
            f"fill it with `python -m mcspark.runtime.formats {folder} {name}`"
        )
    return [found[digest] for digest in wanted]


def _resolved(feature: Feature) -> list[str]:
    try:
        return fetched(feature.coordinate, feature.excluded)
    except UnresolvedError as error:
        raise ConfigurationError(
            f"{feature.coordinate} is not on the class path and could not be resolved: {error}. Ways out: "
            f"--packages {feature.coordinate} with spark.jars.ivySettings for your own repository; --jars; "
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
            for jar in _resolved(FEATURES[name]):
                print(shutil.copy2(jar, folder))
            checked_jars(Path(folder), name)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

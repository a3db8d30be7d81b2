"""What Spark lacks for some formats and file systems, and the jars that bring it, by the build of Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mcspark.config import Config, Output
from mcspark.config.tables import InputTable
from mcspark.engine.classic.jvm import Platform

_S3 = re.compile(r"s3a?://", re.IGNORECASE)


@dataclass(frozen=True)
class Build:
    """The jars of a feature for one build of Spark, or of its Hadoop.

    Parameters
    ----------
    coordinate : str
        Of the artefact, for Spark's resolver.
    jars : mapping of str to str
        The coordinates of the jars, by SHA-256.
    """

    coordinate: str
    jars: Mapping[str, str]


@dataclass(frozen=True)
class Feature:
    """One thing that Spark does not bring.

    Parameters
    ----------
    excluded : str
        What the artefact would bring and Spark has.
    builds : mapping of str to Build
        By what they are for, such as ``Spark 3.5 with Scala 2.12`` or ``Hadoop 3.3.4``.
    probe : str
        A class that is loadable where the jars are.
    extension : str
        Rules that the session must have; empty for none.
    settings : mapping of str to str
        Settings that it needs, unless the operator has set them.
    """

    excluded: str
    builds: Mapping[str, Build]
    probe: str
    extension: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    def build_for(self, platform: Platform) -> Build | None:
        """The jars for the running Spark; None where they are not known."""
        return next((self.builds[name] for name in _names(platform) if name in self.builds), None)


def _names(platform: Platform) -> tuple[str, str]:
    return f"Spark {platform.spark} with Scala {platform.scala}", f"Hadoop {platform.hadoop}"


FEATURES = {
    "delta": Feature(
        "org.*:*,com.*:*,io.airlift:*,io.unitycatalog:*,commons-*:*,javax.*:*",
        {
            "Spark 3.5 with Scala 2.12": Build(
                "io.delta:delta-spark_2.12:3.3.3",
                {
                    "4912bf902a1c453aba3bd838ff212dedd357155212f9bb37a6b47d97f2827ebc": (
                        "io.delta:delta-spark_2.12:3.3.3"
                    ),
                    "45ad193053fd30cebe6d9ab1889873cde39b223a0f210e00ebee8b6642476901": (
                        "io.delta:delta-storage:3.3.3"
                    ),
                },
            ),
            "Spark 4.1 with Scala 2.13": Build(
                "io.delta:delta-spark_4.1_2.13:4.4.0",
                {
                    "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10": (
                        "io.delta:delta-spark_4.1_2.13:4.4.0"
                    ),
                    "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc": (
                        "io.delta:delta-storage:4.4.0"
                    ),
                    "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11": (
                        "io.delta:delta-kernel-api:4.4.0"
                    ),
                    "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b": (
                        "io.delta:delta-kernel-defaults:4.4.0"
                    ),
                    "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa": (
                        "io.delta:delta-kernel-unitycatalog:4.4.0"
                    ),
                },
            ),
        },
        "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "io.delta.sql.DeltaSparkSessionExtension",
        {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"},
    ),
    "iceberg": Feature(
        "",
        {
            "Spark 3.5 with Scala 2.12": Build(
                "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.1",
                {
                    "39ea09e6c03550a300b9d9ab498949836d2d434e441da4c12a943a086e396940": (
                        "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.1"
                    ),
                },
            ),
            "Spark 4.1 with Scala 2.13": Build(
                "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",
                {
                    "d6ea6c5d099288daeb7d5a92061bd3d7d8f296492632b42378e5f2f0e3066242": (
                        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
                    ),
                },
            ),
        },
        "org.apache.iceberg.spark.SparkCatalog",
    ),
    "s3": Feature(
        "org.wildfly.openssl:*",
        {
            "Hadoop 3.3.4": Build(
                "org.apache.hadoop:hadoop-aws:3.3.4",
                {
                    "53f9ae03c681a30a50aa17524bd9790ab596b28481858e54efd989a826ed3a4a": (
                        "org.apache.hadoop:hadoop-aws:3.3.4"
                    ),
                    "873fe7cf495126619997bec21c44de5d992544aea7e632fdc77adb1a0915bae5": (
                        "com.amazonaws:aws-java-sdk-bundle:1.12.262"
                    ),
                },
            ),
            "Hadoop 3.4.2": Build(
                "org.apache.hadoop:hadoop-aws:3.4.2",
                {
                    "d2d24e6b715b5656b9d238bf13b6682a07e2004dd36aad74a73aeb854319f4d9": (
                        "org.apache.hadoop:hadoop-aws:3.4.2"
                    ),
                    "62638f33045690c6bc5e496b54b0b2e89a9ad38cbedacdf6e017fea6bc85f55c": (
                        "software.amazon.awssdk:bundle:2.29.52"
                    ),
                    "11029552e37408e41e689b20150f4b372e0b4f232de321ccafd0fcf443cdfb5a": (
                        "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.2.1"
                    ),
                },
            ),
        },
        "org.apache.hadoop.fs.s3a.S3AFileSystem",
    ),
}
"""By name: Delta, Iceberg, and S3 for the Hadoop that Spark brings."""


def features_of(config: Config) -> tuple[str, ...]:
    """The features that the tables and paths of a configuration need."""
    tables: list[InputTable | Output] = [*config.inputs.values()]
    for task in config.compare.tasks:
        tables += [task.scored, *task.attributes, *([task.labels] if task.labels else [])]
    tables += [config.output] if config.output else []
    formats = {table.format for table in tables}
    places = [*(table.path for table in tables), config.drift.against]
    sections = (config.model, config.report, config.compare.output)
    places += [section.path for section in sections if section is not None]
    s3 = {"s3"} if any(place and _S3.match(place) for place in places) else set()
    return tuple(name for name in FEATURES if name in formats | s3)

"""A session of a Spark that runs somewhere else and is spoken to by Spark Connect, at ``sc://HOST:PORT``."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import pyspark
import structlog
from pyspark.sql import SparkSession

from mcspark.config.secrets import redact_uri
from mcspark.engine.connect import client
from mcspark.engine.errors import SPARK_ERRORS
from mcspark.engine.literal import literal_reader
from mcspark.errors import ConfigurationError, TransientError
from mcspark.runtime.files.files import Files, beside, leaf
from mcspark.runtime.process.causes import java_reason

log = structlog.get_logger(__name__)

# Which rows share a file may depend on hosts there, and nothing else does.
_MAY_DIFFER = (
    "spark.shuffle.reduceLocality.enabled",
    "spark.sql.legacy.javaCharsets",
    "spark.sql.ansi.enabled",
)
_OLDEST = 4
ANSWER_SECONDS = 30


def remote_session(app_name: str, settings: Mapping[str, str], address: str) -> SparkSession:
    """A session at the address, with settings on which results depend.

    Parameters
    ----------
    app_name : str
    settings : mapping
    address : str

    Raises
    ------
    ConfigurationError
        If this Spark is too old to be a client, a package is missing, or a setting cannot be what it must be.
    TransientError
        If nobody answers there.
    """
    if int(pyspark.__version__.partition(".")[0]) < _OLDEST:
        raise ConfigurationError(
            f"a Spark Connect server is named, for which pyspark {pyspark.__version__} is too old: install "
            "pyspark 4.1 or later with mcspark[connect]"
        )
    if missing := client.missing_packages():
        raise ConfigurationError(f"Spark Connect needs {', '.join(missing)}: install mcspark[connect]")
    client.notice_silent_servers()
    shown = redact_uri(address)
    try:
        client.await_server(address, ANSWER_SECONDS)
    except TimeoutError as error:
        raise TransientError(f"no Spark Connect server answers at {shown}: {error}") from error
    except SPARK_ERRORS as error:
        raise ConfigurationError(
            f"{shown}: no address of a Spark Connect server ({java_reason(error)})"
        ) from error
    try:
        spark = SparkSession.builder.remote(address).appName(app_name).getOrCreate()
        client.give_up_after_a_minute(spark)
        log.info("connected", address=shown, spark=spark.version)
        for key, value in settings.items():
            _set(spark, key, value)
    except SPARK_ERRORS as error:
        raise TransientError(f"no session at {shown} ({java_reason(error)}); try again") from error
    return spark


def check_shared(spark: SparkSession, paths: Sequence[str]) -> None:
    """Refuse places that are one folder for this process and another one for the Spark of its session.

    Rows would be written there and published here. A small file is written beside each place, read by Spark,
    and removed.

    Raises
    ------
    ConfigurationError
        If Spark does not read what this process has written.
    """
    for path in paths:
        files = Files(spark, path)
        made = files.missing_above(path)
        name = leaf(path).lstrip("._")  # Spark reads no hidden file
        probe = beside(path, f"{name}.seen-{uuid.uuid4().hex}")
        try:
            files.write_text(probe, probe)
            seen = [row[0] for row in literal_reader(spark).text(probe).collect()]
        except SPARK_ERRORS as error:
            raise ConfigurationError(
                f"{path}: Spark does not see what this machine writes there ({java_reason(error)}); over "
                "Spark Connect, name a folder on a file system that both have mounted at the same path"
            ) from error
        finally:
            files.delete(probe)
            files.delete_empty(made)
        if seen != [probe]:
            raise ConfigurationError(f"{path}: Spark sees another file there than this machine")


def _set(spark: SparkSession, key: str, value: str) -> None:
    try:
        spark.conf.set(key, value)
    except SPARK_ERRORS as error:
        there = spark.conf.get(key, None)
        if there == value:
            return
        if key not in _MAY_DIFFER:
            raise ConfigurationError(
                f"{key} must be {value}, is {there} at the server, and cannot be set from here; set it there"
            ) from error
        log.info("the server keeps a setting", setting=key, value=there)

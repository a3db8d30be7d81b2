"""Whether another Spark does the work, spoken to by Spark Connect, and where it is."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

REMOTE = "SPARK_REMOTE"
# How `spark-submit --remote` hands its settings to Python, in several JSON objects.
_COUNT = "PYSPARK_REMOTE_INIT_CONF_LEN"
_GIVEN = "PYSPARK_REMOTE_INIT_CONF_{}"


def remote_address(environ: Mapping[str, str] = os.environ) -> str | None:
    """The address, such as ``sc://HOST:PORT``; None where this process has a Spark of its own."""
    if address := environ.get(REMOTE):
        return address
    given: dict[str, str] = {}
    for i in range(int(environ.get(_COUNT, "0"))):
        given |= json.loads(environ[_GIVEN.format(i)])
    return given.get("spark.remote")

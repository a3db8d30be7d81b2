"""How long the client of Spark Connect waits for a server; Spark's own says nothing for ten minutes."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pyspark.sql import SparkSession

_PACKAGES = {"grpc": "grpcio", "grpc_status": "grpcio-status", "zstandard": "zstandard"}
# Waits of 0.05, 0.2, 0.8, 3.2 s and then 5 s each: a minute.
_RETRIES, _LONGEST_WAIT_MS = 15, 5000

PING_SECONDS = 330
"""A server that says nothing is pinged; more often than every five minutes, Spark's would hang up."""
ANSWER_SECONDS = 60
"""A longer silence after a ping is taken for a connection that is lost."""


def missing_packages() -> list[str]:
    """What is not installed of what a client needs."""
    return [package for module, package in _PACKAGES.items() if find_spec(module) is None]


def await_server(address: str, seconds: float) -> None:
    """Wait until a server answers at ``sc://HOST:PORT``.

    Raises
    ------
    TimeoutError
        If none does in time.
    PySparkException
        If this is no address.
    """
    if not address.startswith("sc:"):  # a server that Spark starts here
        return
    grpc: Any = import_module("grpc")
    client: Any = import_module("pyspark.sql.connect.client")
    channel = client.DefaultChannelBuilder(address).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=seconds)
    except grpc.FutureTimeoutError:
        raise TimeoutError(
            f"no answer in {seconds:g} s; check address, port, proxy, and whether it runs"
        ) from None
    finally:
        channel.close()


def give_up_after_a_minute(spark: SparkSession) -> None:
    """Let a session ask a server that has gone away for a minute only."""
    retries: Any = import_module("pyspark.sql.connect.client.retries")
    client: Any = spark.client
    client.set_retry_policies([retries.DefaultPolicy(max_retries=_RETRIES, max_backoff=_LONGEST_WAIT_MS)])


def notice_silent_servers() -> None:
    """Let connections from here on end that nobody answers on, such as those of a process that is stopped."""
    client: Any = import_module("pyspark.sql.connect.client")
    options = client.ChannelBuilder.GRPC_DEFAULT_OPTIONS
    wanted = {
        "grpc.keepalive_time_ms": PING_SECONDS * 1000,
        "grpc.keepalive_timeout_ms": ANSWER_SECONDS * 1000,
        "grpc.http2.ping_timeout_ms": ANSWER_SECONDS * 1000,  # which newer ones go by
        "grpc.http2.max_pings_without_data": 0,  # no limit
    }
    options[:] = [*(option for option in options if option[0] not in wanted), *wanted.items()]

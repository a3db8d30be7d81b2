"""A Spark Connect server of the installed Spark, as an operator starts one."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import DEFAULTS, THIS_PYTHON, environment

MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server(folder: Path, **settings: str) -> Iterator[str]:
    """Its address, ``sc://localhost:PORT``; it works in the folder, and ends with the block."""
    with socket.socket() as held:
        held.bind(("localhost", 0))
        port = held.getsockname()[1]
    conf = {**DEFAULTS, "spark.connect.grpc.binding.port": str(port), **settings}
    command = [str(THIS_PYTHON.parent / "spark-submit"), "--master", "local[2]", "--class", MAIN]
    command += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    environ = environment({"PYSPARK_PYTHON": str(THIS_PYTHON)})
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [*command, "spark-internal"],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait(server, port, folder / "server.log")
            yield f"sc://localhost:{port}"
        finally:
            os.killpg(server.pid, 9)
            server.wait()


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        with socket.socket() as knock:
            if knock.connect_ex(("localhost", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"no Spark Connect server; the end of its log:\n{log.read_text()[-3000:]}")

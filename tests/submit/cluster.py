"""A Spark standalone cluster on the loopback address: one master, some small workers, ended by process id."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from harness import QUICK_JAVA, environment

HOST = "127.0.0.1"
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
START_SECONDS = 60


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes
    ----------
    url
        For `--master`.
    page
        The master's page.
    """

    url: str
    page: str

    def state(self) -> dict[str, Any]:
        """What the master says of itself."""
        with urllib.request.urlopen(f"{self.page}/json/", timeout=10) as answer:
            state = json.load(answer)
        assert isinstance(state, dict)
        return state


@contextlib.contextmanager
def standalone(folder: Path, workers: int = 2, memory: str = "1g") -> Iterator[Cluster]:
    """Start a cluster with one core a worker; its logs are files in the folder."""
    port, page = _free_ports(2)
    url = f"spark://{HOST}:{port}"
    with contextlib.ExitStack() as stack:
        options = ["--host", HOST, "--port", str(port), "--webui-port", str(page)]
        master = stack.enter_context(_started(folder, "master", MASTER, *options))
        cluster = Cluster(url, f"http://{HOST}:{page}")
        _wait(master, lambda: cluster.state()["status"] == "ALIVE")
        for i in range(workers):
            options = ["--host", HOST, "--cores", "1", "--memory", memory, "--webui-port", "0"]
            options += ["--work-dir", str(folder / f"work-{i}"), url]
            stack.enter_context(_started(folder, f"worker-{i}", WORKER, *options))
        _wait(master, lambda: cluster.state()["aliveworkers"] == workers)
        yield cluster


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def _started(folder: Path, name: str, main: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), main, *options]
    changes = {
        "SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA
    }  # fmt: skip
    with (
        (folder / f"{name}.log").open("wb") as log,
        subprocess.Popen(command, env=environment(dict(changes)), stdout=log, stderr=log) as process,
    ):
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait(master: subprocess.Popen[bytes], holds: Any) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        with contextlib.suppress(OSError):
            if holds():
                return
        assert master.poll() is None, "the master has ended; see its log"
        assert time.monotonic() < deadline, f"the cluster did not come up in {START_SECONDS} s"
        time.sleep(0.2)

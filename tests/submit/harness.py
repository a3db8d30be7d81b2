"""Run a script by the real `spark-submit`, as an operator would, and look at what came out."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
THIS_PYTHON = Path(sys.executable)
# Most of a short job is spent in compiling Java: the quick compiler alone nearly halves it. Its own 48 MB for
# what it has compiled are full after fifteen jobs, and then it compiles again what it has thrown away.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
# A third of the rest is loading classes, if nobody has made this (see class_archive.py).
ARCHIVE = Path(sys.prefix) / "classes.jsa"
QUICK_JAVA = f"{JAVA} -XX:SharedArchiveFile={ARCHIVE} -Xlog:disable" if ARCHIVE.is_file() else JAVA
# A test machine is small, and its tests run one after another.
DEFAULTS = {
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.executor.extraJavaOptions": QUICK_JAVA,
}


@dataclass(frozen=True)
class Submitted:
    """What a `spark-submit` left behind.

    Attributes
    ----------
    exit_code
        Of the process.
    stdout, stderr
        All of it.
    seconds
        Wall clock.
    """

    exit_code: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def summary(self) -> dict[str, Any]:
        """The last line of stdout, which every job promises to be one JSON object."""
        lines = self.stdout.rstrip("\n").splitlines()
        assert lines, f"nothing on stdout; the end of stderr:\n{self.stderr[-3000:]}"
        summary = json.loads(lines[-1])
        assert isinstance(summary, dict)
        return summary


def submit(
    script: str | Path,
    *arguments: str | Path,
    master: str | None = "local[2]",
    conf: Mapping[str, str] | None = None,
    options: tuple[str, ...] = (),
    env: Mapping[str, str | None] | None = None,
    timeout: float = 300,
    cwd: Path | None = None,
    python: Path = THIS_PYTHON,
) -> Submitted:
    """Run `spark-submit [options] script [arguments]`.

    Parameters
    ----------
    script
        Path of a Python file; a relative one is looked for in the checkout.
    arguments
        For the script.
    master
        For `--master`; None leaves it to Spark.
    conf
        For `--conf`, over this module's defaults.
    options
        More options of `spark-submit`, such as `("--jars", …)`.
    env
        Changes to the environment; None removes a variable.
    timeout
        Seconds after which the test fails; a job that hangs is a bug.
    cwd
        Working directory; by default the checkout.
    python
        Of the environment whose `spark-submit` runs it.
    """
    command = [_spark_submit(python)]
    if master is not None:
        command += ["--master", master]
    for key, value in {**DEFAULTS, **(conf or {})}.items():
        command += ["--conf", f"{key}={value}"]
    command += [*options, str(ROOT / script), *(str(argument) for argument in arguments)]
    start = time.monotonic()
    with subprocess.Popen(
        command,
        env=environment(env or {}, python),
        cwd=cwd or ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            stdout, stderr = process.communicate()
            raise AssertionError(
                f"spark-submit {script} still ran after {timeout:.0f} s; the end of its stderr:\n"
                f"{stderr[-3000:]}"
            ) from None
    return Submitted(process.returncode, stdout, stderr, time.monotonic() - start)


def submit_jobs(file: Path, *jobs: list[str], fault: str = "none", **options: Any) -> list[Submitted]:
    """Run jobs one after the other in one session, by one `spark-submit` of `tests/faults/child.py`.

    Parameters
    ----------
    file
        Where the list of jobs is kept meanwhile.
    jobs
        Name and arguments of each.
    fault
        What befalls them.
    options
        Of :func:`submit`.
    """
    file.write_text(json.dumps([[str(word) for word in job] for job in jobs]))
    done = submit("tests/faults/child.py", fault, file, **options)
    return [
        Submitted(told["exit_code"], json.dumps(summary), done.stderr, done.seconds)
        for summary, told in ended_jobs(done.stdout)
    ]


def ended_jobs(stdout: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Of each job that `tests/faults/child.py` ended: its summary, and its exit code and what befell it."""
    lines = [json.loads(line) for line in stdout.splitlines() if line.startswith("{")]
    return list(zip(lines[0::2], lines[1::2], strict=False))


def documented(name: str) -> list[str]:
    """Words of the last line of the block behind `<!-- command: name -->` in the pages for operators."""
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/operate").glob("*.md"))
    behind = pages.partition(f"<!-- command: {name} -->\n```sh\n")[2]
    return shlex.split(behind.partition("\n```")[0].splitlines()[-1])


def _spark_submit(python: Path = THIS_PYTHON) -> str:
    """The `spark-submit` beside a Python, or the one on the PATH."""
    beside = python.parent / "spark-submit"
    found = str(beside) if beside.is_file() else shutil.which("spark-submit")
    assert found, "no spark-submit: install the extra `local`"
    return found


def environment(changes: Mapping[str, str | None], python: Path = THIS_PYTHON) -> dict[str, str]:
    """The environment of an operator who has activated the environment of a Python."""
    bin_folder = str(python.parent)
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "SPARK_SUBMIT_OPTS": QUICK_JAVA}
    # What a Spark session in the test process has left in the environment is not the operator's.
    for name in (
        "PYSPARK_GATEWAY_PORT",
        "PYSPARK_GATEWAY_SECRET",
        "PYSPARK_PYTHON",
        "SPARK_HOME",
        "SPARK_ENV_LOADED",
    ):
        environ.pop(name, None)
    for name, value in changes.items():
        if value is None:
            environ.pop(name, None)
        else:
            environ[name] = value
    return environ

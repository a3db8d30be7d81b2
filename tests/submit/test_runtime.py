"""The process around a job: `spark-submit` in the ways operators call it, its streams and its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import ROOT, submit

from mcspark.runtime.jars import NEEDED, checked_jars
from mcspark.runtime.java import packaged_java
from mcspark.runtime.local import conf_files, write_conf

PROBE = "tests/submit/scripts/probe.py"


@pytest.fixture(scope="module")
def jar_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the documented command leaves for clusters without a way out."""
    folder = tmp_path_factory.mktemp("jars") / "new"
    command = [sys.executable, "-m", "mcspark.runtime.jars", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    assert sorted(done.stdout.split()) == sorted(str(jar) for jar in folder.iterdir())
    return folder


@pytest.fixture
def no_way_out(tmp_path: Path) -> dict[str, str]:
    """Spark settings under which the resolver finds nothing, neither in a cache nor anywhere else."""
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers><filesystem name="none">'
        f'<artifact pattern="{tmp_path}/nothing/[artifact]-[revision].[ext]"/>'
        "</filesystem></resolvers></ivysettings>"
    )
    return {"spark.jars.ivy": str(tmp_path / "ivy"), "spark.jars.ivySettings": str(settings)}


@pytest.mark.synapseml
def test_a_bare_submit_trains_and_ends(tmp_path: Path) -> None:
    """No flag at all: the jars are resolved, and the threads that a fit leaves do not keep the process."""
    done = submit(PROBE, "--lightgbm", "--preflight", master=None, timeout=240)
    assert (done.exit_code, done.summary["rows"]) == (0, 200), done.stderr[-3000:]
    assert done.summary["conf"]["spark.master"] == "local[*]"
    assert '"event": "a log line"' in done.stderr
    assert '"run_id": "probe"' in done.stderr
    assert "noise from a library" in done.stderr
    assert "hunter2" not in done.stderr + done.stdout
    for line in done.stdout.splitlines()[:-1]:  # native code prints where it likes, but before the summary
        assert line.startswith("[LightGBM]"), line


def test_exit_codes_reach_the_shell() -> None:
    done = submit(PROBE, "--exit-code", "75")
    assert (done.exit_code, done.summary["exit_code"]) == (75, 75)
    assert len(done.stdout.splitlines()) == 1


def test_a_bare_submit_needs_no_java_on_the_machine(tmp_path: Path) -> None:
    java = packaged_java()
    if java is None:
        pytest.skip("neither the extra `local` nor `spark4` is installed")
    write_conf(tmp_path / "conf", conf_files(java))
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for program in Path(folder).iterdir():
            if program.name != "java" and not (tools / program.name).exists():
                (tools / program.name).symlink_to(program)
    path = os.pathsep.join((str(Path(sys.executable).parent), str(tools)))
    done = submit(
        PROBE, conf={}, env={"PATH": path, "JAVA_HOME": None, "SPARK_CONF_DIR": str(tmp_path / "conf")}
    )
    assert (done.exit_code, done.summary["rows"]) == (0, 200), done.stderr[-3000:]
    assert " INFO " not in done.stderr


@pytest.mark.synapseml
def test_a_folder_of_jars_serves_where_nothing_can_be_resolved(
    jar_folder: Path, no_way_out: dict[str, str]
) -> None:
    done = submit(PROBE, "--lightgbm", conf=no_way_out, env={"MCSPARK_JARS": str(jar_folder)})
    assert (done.exit_code, done.summary["rows"]) == (0, 200), done.stderr[-3000:]


@pytest.mark.synapseml
def test_jars_of_the_operator_on_two_executors(jar_folder: Path, no_way_out: dict[str, str]) -> None:
    """`--jars` on separate executor processes; nothing is resolved, since nothing could be."""
    jars = checked_jars(jar_folder)
    assert len(jars) == len(NEEDED)
    done = submit(
        PROBE,
        "--lightgbm",
        "--preflight",
        master="local-cluster[2,1,1024]",
        conf=no_way_out,
        options=("--jars", ",".join(str(jar) for jar in jars)),
    )
    assert (done.exit_code, done.summary["rows"]) == (0, 200), done.stderr[-3000:]
    assert (done.summary["slots"], done.summary["executors"]) == (2, 2)


@pytest.mark.synapseml
def test_jars_that_cannot_be_had_are_a_configuration_error(no_way_out: dict[str, str]) -> None:
    done = submit(PROBE, "--lightgbm", conf=no_way_out, env={"MCSPARK_JARS": None})
    assert done.exit_code == 2
    for way_out in ("MCSPARK_JARS", "mcspark.runtime.jars", "--jars", "--packages", "spark.jars.ivySettings"):
        assert way_out in done.summary["error"]


def test_an_executor_without_numpy_is_found_before_the_job(tmp_path: Path) -> None:
    """A Python of the right version that lacks the libraries."""
    bare = tmp_path / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    done = submit(
        PROBE,
        "--preflight",
        env={"PYSPARK_PYTHON": str(bare / "bin" / "python"), "PYSPARK_DRIVER_PYTHON": sys.executable},
    )
    assert done.exit_code == 2
    assert "NumPy on " in done.summary["error"]
    assert "is missing, the driver has" in done.summary["error"]


def test_plain_python_runs_a_job_too() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / PROBE), "--exit-code", "4"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 4, done.stderr[-3000:]
    (line,) = done.stdout.splitlines()
    assert '"exit_code": 4' in line

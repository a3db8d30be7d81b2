"""The jobs on a standalone cluster of two workers, whose Python has mcspark from the archive alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
from cluster import Cluster, standalone
from harness import ROOT, Submitted, documented, submit, submit_jobs
from small_tables import KEY, write_config, write_tables

from mcspark.acs.population import population_arrays
from mcspark.runtime.jars import NEEDED, checked_jars

ROWS = 4000
CONF = ROOT / "conf" / "spark" / "standalone.conf"
SMALL = {"spark.driver.memory": "1g", "spark.cores.max": "2"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of mcspark; Spark puts archives on the path of its Python by the ending `.zip` alone."""
    folder = tmp_path_factory.mktemp("dist")
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{sysconfig.get_path('scripts')}") or "uv"
    subprocess.run([uv, "build", "--wheel", "-q", "-o", str(folder)], check=True, cwd=ROOT)
    (wheel,) = folder.glob("mcspark-*.whl")
    return wheel.rename(folder / "mcspark.zip")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with all that mcspark needs, and without mcspark."""
    return other_python(tmp_path_factory.mktemp("python") / "env")


def other_python(folder: Path, *first: Path) -> Path:
    """An environment that sees these folders and then the libraries of this one, but no editable install."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    libraries = [*map(str, first), sysconfig.get_path("purelib")]
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n")
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return pd.DataFrame(population_arrays(ROWS, seed=12))


@pytest.fixture(scope="module")
def tables(people: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several files, so that both executors read."""
    folder = tmp_path_factory.mktemp("tables")
    write_tables(folder, people, files=4)
    return folder


@pytest.fixture(scope="module")
def no_way_out(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Spark settings under which nothing can be resolved."""
    folder = tmp_path_factory.mktemp("ivy")
    (folder / "settings.xml").write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers><filesystem name="none">'
        f'<artifact pattern="{folder}/nothing/[artifact]-[revision].[ext]"/>'
        "</filesystem></resolvers></ivysettings>"
    )
    return {"spark.jars.ivy": str(folder / "ivy"), "spark.jars.ivySettings": str(folder / "settings.xml")}


def pythons(driver: Path, executors: Path) -> dict[str, str | None]:
    """Environment that names the Python of each, and no folder of jars."""
    return {
        "PYSPARK_PYTHON": str(executors), "PYSPARK_DRIVER_PYTHON": str(driver), "MCSPARK_JARS": None
    }  # fmt: skip


@pytest.fixture(scope="module")
def on_cluster(cluster: Cluster, package: Path, python: Path) -> Any:
    """Submit a job, or several in one session, as an operator does who has one archive and a cluster."""

    def run(job: str | list[list[str]], *arguments: str | Path, **options: Any) -> Any:
        options["conf"] = {**SMALL, **options.pop("conf", {})}
        options["env"] = pythons(python, options.pop("python", python))
        more = ("--properties-file", str(CONF), "--py-files", str(package), *options.pop("options", ()))
        if isinstance(job, str):
            return submit(f"jobs/{job}.py", *arguments, master=cluster.url, options=more, **options)
        return submit_jobs(options.pop("file"), *job, master=cluster.url, options=more, **options)

    return run


@pytest.fixture(scope="module")
def calibrated(
    cluster: Cluster, package: Path, python: Path, tables: Path, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """The main job by the documented command, its jars by `--packages`."""
    folder = tmp_path_factory.mktemp("calibrated")
    config = write_config(folder, tables, report={"path": str(folder / "report.html")})
    places = {"spark://HOST:7077": cluster.url, "mcspark.zip": str(package), "my.yaml": str(config)}
    words = [places.get(word, word) for word in documented("cluster")]
    script = words.index("jobs/calibrate.py")
    done = submit(
        *words[script:], master=None, conf=SMALL, options=tuple(words[1:script]), env=pythons(python, python)
    )
    assert done.exit_code == 0, done.stderr[-3000:]
    return folder, done.summary


def output(summary: dict[str, Any]) -> pd.DataFrame:
    return pd.read_parquet(summary["paths"]["output"]).sort_values(KEY, ignore_index=True)


def pages(folder: Path) -> list[bytes]:
    """Of each data file, in the order of their parts, all but the footer.

    The footer lists encodings in an order that each JVM has for itself.
    """
    files = [file.read_bytes() for file in sorted(folder.glob("part-*"))]
    return [data[: -8 - int.from_bytes(data[-8:-4], "little")] for data in files]


def test_calibrate_with_packages(calibrated: Any, cluster: Cluster, people: pd.DataFrame) -> None:
    folder, summary = calibrated
    assert summary["engine"].startswith("synapseml")
    assert summary["rows"]["scored"] == len(output(summary)) == ROWS
    assert summary["metrics"]["after"]["loss"] < summary["metrics"]["before"]["loss"]
    assert "<html" in (folder / "report.html").read_text()
    (application, *_) = cluster.state()["completedapps"]
    assert application["name"] == "mcspark calibrate"
    assert output(summary)[KEY].equals(people[KEY].sort_values(KEY, ignore_index=True))


@pytest.fixture(scope="module")
def applied(
    calibrated: Any, on_cluster: Any, tables: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[Submitted]:
    """In one session without SynapseML: the saved model applied twice, an audit, a model of its own."""
    folder = tmp_path_factory.mktemp("applied")
    here = ["--config", str(write_config(folder, tables, model={"path": calibrated[1]["paths"]["model"]}))]
    jobs = [
        [job, *here, "--set", f"output.path={folder / name}"]
        for job, name in (("score", "first"), ("score", "second"), ("audit", "audited"))
    ]
    sets = {
        "calibrator.training": "rows", "calibrator.engine": "lightgbm",
        "output.path": folder / "of_rows", "model.path": folder / "model_of_rows",
    }  # fmt: skip
    jobs += [["calibrate", *here, *(word for key in sets for word in ("--set", f"{key}={sets[key]}"))]]
    done: list[Submitted] = on_cluster(jobs, file=folder / "jobs.json")
    assert [job.exit_code for job in done] == [0, 0, 0, 0], done[0].stderr[-3000:]
    return done


def test_score_twice_gives_the_same_rows_page_for_page(calibrated: Any, applied: list[Submitted]) -> None:
    """By the saved model, without LightGBM, two executors racing each other."""
    first, second = (job.summary for job in applied[:2])
    np.testing.assert_allclose(
        output(first)["calibrated_score"], output(calibrated[1])["calibrated_score"], rtol=0, atol=1e-12
    )
    before, again = (pages(Path(summary["paths"]["output"])) for summary in (first, second))
    assert before
    assert again == before


def test_audit(calibrated: Any, applied: list[Submitted]) -> None:
    for m in ("10", "20"):
        found, expected = (
            summary["metrics"]["before"]["by_level"][m]["mc_error"]
            for summary in (applied[2].summary, calibrated[1])
        )
        assert found == pytest.approx(expected, abs=1e-12)


def test_the_official_library_trains_on_both_executors(calibrated: Any, applied: list[Submitted]) -> None:
    summary = applied[3].summary
    assert summary["engine"] == f"lightgbm {lightgbm.__version__} in the cluster"
    found, expected = (told["metrics"]["after"]["loss"] for told in (summary, calibrated[1]))
    assert found == pytest.approx(expected, rel=1e-3)
    assert found < summary["metrics"]["before"]["loss"]


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """`--jars` with the folder that the documented command fills."""
    folder = tmp_path_factory.mktemp("jars")
    command = [sys.executable, "-m", "mcspark.runtime.jars", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=300, cwd=ROOT)
    found = checked_jars(folder)
    assert len(found) == len(NEEDED)
    return "--jars", ",".join(str(jar) for jar in found)


def test_compare_with_local_jars_and_no_registry(
    on_cluster: Any, tables: Path, jars: tuple[str, str], no_way_out: dict[str, str], tmp_path: Path
) -> None:
    compare = {
        "methods": ["none", "trees"], "partitions": 1, "sweep": "none", "engine": "synapseml",
        "output": {"path": str(tmp_path / "compare")},
    }  # fmt: skip
    config = write_config(tmp_path, tables, compare=compare)
    done = on_cluster("compare", "--config", config, options=jars, conf=no_way_out)
    assert done.exit_code == 0, done.stderr[-3000:]
    results = pd.read_parquet(tmp_path / "compare" / "results.parquet")
    assert set(results["method"]) == {"none", "trees"}


def test_another_numpy_on_the_executors_is_exit_2_and_names_the_host(
    on_cluster: Any, tables: Path, tmp_path: Path
) -> None:
    older = tmp_path / "older"
    (older / "numpy").mkdir(parents=True)
    (older / "numpy" / "__init__.py").write_text('__version__ = "1.21.0"\n')
    executors = other_python(tmp_path / "executors", older)
    done = on_cluster("audit", "--config", write_config(tmp_path, tables), python=executors)
    assert done.exit_code == done.summary["exit_code"] == 2, done.stderr[-3000:]
    assert "NumPy on " in done.summary["error"]
    assert f"is 1.21.0, the driver has {np.__version__}" in done.summary["error"]
    assert not (tmp_path / "calibrated_metrics").exists()


def test_a_native_library_that_does_not_load_is_found_before_the_work(
    cluster: Cluster, jars: tuple[str, str]
) -> None:
    """Executors that can unpack it nowhere."""
    conf = {**SMALL, "spark.executor.extraJavaOptions": "-Djava.io.tmpdir=/dev/null/nowhere"}
    options = ("--properties-file", str(CONF), *jars)
    probe = ("tests/submit/scripts/probe.py", "--lightgbm", "--preflight")
    done = submit(*probe, master=cluster.url, conf=conf, options=options)
    assert done.exit_code == 2, done.stderr[-3000:]
    assert "native library does not load on executor " in done.summary["error"]
    assert "/dev/null/nowhere" in done.summary["error"]
    assert " on 127.0.0.1: UnsatisfiedLinkError" in done.summary["error"]

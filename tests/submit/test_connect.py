"""Jobs over Spark Connect: a server of Spark 4's own jars does the work, and this Python holds no JVM."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pyspark
import pytest
from connect_server import connect_server
from harness import THIS_PYTHON, Submitted, environment, submit
from small_tables import CALIBRATOR, KEY, write_config, write_tables

from mcspark.acs.population import population_arrays
from mcspark.runtime.features import FEATURES
from tests.conftest import one_at_a_time
from tests.tiny import TINY

pytestmark = pytest.mark.skipif(
    pyspark.__version__ < "4" or find_spec("grpc") is None, reason="needs Spark 4 and the extra `connect`"
)
DAY = {"ds": "2026-11-26"}
LEARNING: dict[str, Any] = {**CALIBRATOR, "engine": "lightgbm", "rounds": 2}


def connected(
    job: str, *arguments: str | Path, remote: str, cwd: Path, env: dict[str, str] | None = None
) -> Submitted:
    """The command of a job, run to its end."""
    command = [str(THIS_PYTHON.parent / "mcspark"), job, "--remote", remote, *map(str, arguments)]
    start = time.monotonic()
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, cwd=cwd, env=environment(env or {})
    )
    return Submitted(done.returncode, done.stdout, done.stderr, time.monotonic() - start)


@pytest.fixture(scope="module")
def place(tmp_path_factory: Any) -> Path:
    """Folder with small tables, in which the jobs are started."""
    folder: Path = tmp_path_factory.mktemp("connect")
    people = pd.DataFrame(population_arrays(6000, seed=17))
    people.loc[:199, "label"] = np.nan
    write_tables(folder / "tables", people, files=2)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: Any) -> Iterator[str]:
    """A server that works in a folder of its own, and that has been started with Delta Lake and Iceberg."""
    folder = tmp_path_factory.mktemp("server")
    command = [THIS_PYTHON, "-m", "mcspark.runtime.formats", folder / "jars", "delta", "iceberg"]
    with one_at_a_time(tmp_path_factory.getbasetemp().parent / "ivy.lock"):
        subprocess.run(command, capture_output=True, check=True, timeout=300, env=environment({}))
    delta = FEATURES["delta"]
    lake = {
        "spark.jars": ",".join(map(str, (folder / "jars").iterdir())),
        "spark.sql.extensions": delta.extension,
        "spark.databricks.delta.snapshotPartitions": "1",
        **delta.settings,
    }
    with connect_server(folder, **TINY, **lake) as address:
        yield address


@pytest.fixture(scope="module")
def calibrated(place: Path, server: str) -> Submitted:
    """Calibrated with paths that begin in the folder of the command, which the server is not in."""
    (place / "there").mkdir()
    config = write_config(
        place / "there", Path("tables"), calibrator=LEARNING, model={"path": "there/model"},
        output={"path": "there/calibrated"}, report={"path": "there/report.html"},
    )  # fmt: skip
    done = connected("calibrate", "--config", config, remote=server, cwd=place)
    assert done.exit_code == 0, done.stderr[-3000:]
    return done


def scores(folder: Path, name: str = "calibrated") -> pd.DataFrame:
    """The rows of all files below a folder, which are those of one version."""
    files = [pq.ParquetFile(path).read().to_pandas() for path in (folder / name).rglob("*.parquet")]
    return pd.concat(files).sort_values(KEY, ignore_index=True)


@pytest.fixture(scope="module")
def in_delta(place: Path, server: str, calibrated: Submitted) -> Path:
    """Folder of a run that has scored the tables into a Delta table, and its configuration."""
    del calibrated
    folder = place / "delta"
    folder.mkdir()
    output = {"path": str(folder / "calibrated"), "format": "delta", "partition": DAY}
    config = write_config(folder, place / "tables", model={"path": str(place / "there/model")}, output=output)
    scored = connected("score", "--config", config, remote=server, cwd=place)
    assert scored.exit_code == 0, scored.stderr[-3000:]
    assert "ContextLogger" not in scored.stderr, "errors are told by who catches them"
    return folder


def test_the_same_model_and_scores_as_by_spark_submit(place, calibrated):
    here = place / "here"
    here.mkdir()
    config = write_config(here, place / "tables", calibrator=LEARNING)
    done = submit("jobs/calibrate.py", "--config", config, conf=TINY)
    assert done.exit_code == 0, done.stderr[-3000:]
    assert calibrated.summary["engine"].startswith("lightgbm ")
    for name in ("model.json", "trees_0.txt", "trees_1.txt"):
        files = [(folder / "model" / name).read_bytes() for folder in (here, place / "there")]
        assert files[0] == files[1], name
    one, other = scores(here), scores(place / "there")
    assert list(one) == list(other)
    assert len(one) == 6000
    for column in one:
        if one[column].dtype == np.float64:
            assert one[column].to_numpy().tobytes() == other[column].to_numpy().tobytes(), column
        else:
            pd.testing.assert_series_equal(one[column], other[column])
    for key in ("metrics", "saturation", "rows", "cells"):
        assert done.summary[key] == calibrated.summary[key], key


def test_paths_begin_where_the_command_was_started(place, calibrated):
    assert (place / "there/report.html").stat().st_size > 10_000
    assert calibrated.summary["paths"]["output"] == str(place / "there/calibrated")


def test_score_into_delta(place, in_delta):
    commits = [p.read_text() for p in (in_delta / "calibrated/_delta_log").glob("*.json")]
    assert len(commits) == 1
    expected = scores(place / "there")["calibrated_score"].to_numpy()
    assert scores(in_delta)["calibrated_score"].to_numpy().tobytes() == expected.tobytes()


def test_audit(place, server, calibrated, in_delta):
    audited = connected("audit", "--config", in_delta / "run.yaml", remote=server, cwd=place)
    assert audited.exit_code == 0, audited.stderr[-3000:]
    before = calibrated.summary["metrics"]["before"]
    assert audited.summary["metrics"]["before"]["loss"] == before["loss"]


@pytest.mark.parametrize(
    ("sections", "code", "words"),
    [
        ({"calibrator": {"engine": "synapseml"}}, 2, "over Spark Connect nobody can call it"),
        ({"output": {"path": "s3a://bucket/out"}}, 2, "must be on a file system that this machine and Spark"),
        ({"scored": {"path": "nowhere", "key": KEY}}, 3, "nowhere"),
    ],
    ids=["synapseml", "s3a", "no table"],
)
def test_what_cannot_be_had_is_one_sentence(place, server, tmp_path, sections, code, words):
    config = write_config(tmp_path, place / "tables", **sections)
    done = connected("calibrate", "--config", config, remote=server, cwd=place)
    assert done.exit_code == code, done.stderr[-3000:]
    assert words in done.summary["error"]
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "calibrated").exists()


def test_a_folder_that_is_another_one_for_spark_is_refused(place, server, calibrated, tmp_path):
    """Spark would write here, and this process would publish what is there: nothing."""
    del calibrated
    own = tmp_path / "own"
    own.mkdir()
    config = write_config(
        tmp_path,
        place / "tables",
        model={"path": str(place / "there/model")},
        output={"path": str(own / "out")},
    )
    job = f"{THIS_PYTHON.parent / 'mcspark'} score --remote {server} --config {config}"
    inside = f"mount -t tmpfs none {own} || exit 99; {job}; s=$?; ls {own}; exit $s"
    line = ["unshare", "--mount", "sh", "-c", inside]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120, env=environment({}))
    if done.returncode in (1, 99, 127):
        pytest.skip(f"no mount namespaces here: {done.stderr.strip()[-200:]}")
    assert done.returncode == 2, done.stderr[-3000:]
    assert "out: Spark does not see what this machine writes there" in done.stdout
    assert done.stdout.splitlines()[-1] == "_out_manifests"


def test_a_server_that_goes_away_is_transient(place, tmp_path):
    """While it learns: exit 75 within a minute, and nothing is published."""
    config = write_config(tmp_path, place / "tables", calibrator={**LEARNING, "max_trees": 60})
    command = [str(THIS_PYTHON.parent / "mcspark"), "calibrate", "--config", str(config)]
    with connect_server(tmp_path, **TINY) as address:
        job = subprocess.Popen(
            [*command, "--remote", address],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=place,
            env=environment({}),
        )
        assert job.stderr is not None
        for line in job.stderr:
            if "check the rows" in line:
                break
    gone = time.monotonic()
    out, err = job.communicate(timeout=200)
    assert time.monotonic() - gone < 120
    assert job.returncode == 75, err[-3000:]
    assert json.loads(out.splitlines()[-1])["status"] == "transient"
    assert not (tmp_path / "calibrated").exists()


SILENT = """
import concurrent.futures, grpc, time
class Silent(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: time.sleep(600))
server = grpc.server(concurrent.futures.ThreadPoolExecutor(1), [Silent()])
print(server.add_insecure_port("localhost:0"), flush=True)
server.start()
server.wait_for_termination()
"""


def test_a_connection_to_a_server_that_is_stopped_ends(monkeypatch):
    """What is stopped keeps its connections, and says nothing for ever."""
    import grpc
    from pyspark.sql.connect.client import ChannelBuilder, DefaultChannelBuilder

    from mcspark.engine.connect import client

    monkeypatch.setattr(ChannelBuilder, "GRPC_DEFAULT_OPTIONS", list(ChannelBuilder.GRPC_DEFAULT_OPTIONS))
    monkeypatch.setattr(client, "PING_SECONDS", 1)
    monkeypatch.setattr(client, "ANSWER_SECONDS", 1)
    client.notice_silent_servers()
    client.notice_silent_servers()
    with subprocess.Popen([THIS_PYTHON, "-c", SILENT], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            with DefaultChannelBuilder(
                f"sc://localhost:{int(server.stdout.readline())}"
            ).toChannel() as channel:
                call = channel.unary_unary("/a/b").future(b"")
                time.sleep(0.5)
                assert not call.done()
                server.send_signal(signal.SIGSTOP)
                assert call.exception(timeout=30).code() == grpc.StatusCode.UNAVAILABLE
        finally:
            server.kill()


def test_nobody_there_is_transient(place, tmp_path):
    config = write_config(tmp_path, place / "tables")
    program = (
        "import mcspark.runtime.remote as r; r.ANSWER_SECONDS = 2; from mcspark.cli.jobs import app; app()"
    )
    environ = environment({"SPARK_REMOTE": "sc://localhost:9"})
    command = [str(THIS_PYTHON), "-c", program, "score", "--config", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environ)
    assert done.returncode == 75, done.stderr[-3000:]
    assert "no Spark Connect server answers at sc://localhost:9" in done.stdout


def test_submitted_with_a_remote_spark(place, server, in_delta, tmp_path):
    """`spark-submit --remote` starts a JVM that does nothing; the job is as any other, here from Delta into
    Iceberg."""
    config = write_config(
        tmp_path, place / "tables", model={"path": str(place / "there/model")},
        scored={"path": str(in_delta / "calibrated"), "format": "delta", "partition": DAY, "key": KEY},
        output={"path": str(tmp_path / "calibrated"), "format": "iceberg", "partition": DAY},
    )  # fmt: skip
    done = submit("jobs/score.py", "--config", config, master=None, options=("--remote", server))
    assert done.exit_code == 0, done.stdout[-3000:]
    found = scores(tmp_path, "calibrated/data")["calibrated_score"].to_numpy()
    assert found.tobytes() == scores(place / "there")["calibrated_score"].to_numpy().tobytes()

"""Formats and stores that Spark does not bring, by the real `spark-submit` without a word about jars."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from harness import ROOT, submit, submit_jobs
from small_tables import CALIBRATOR, KEY, write_config, write_tables

from mcspark.acs.population import population_arrays

ROWS = 3000
DAY = {"ds": "2026-11-26"}
OFFICIAL = {"calibrator": {**CALIBRATOR, "engine": "lightgbm"}}
BUCKET = "scores"


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return pd.DataFrame(population_arrays(ROWS, seed=21))


@pytest.fixture(scope="module")
def tables(people: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    write_tables(folder, people)
    return folder


def test_delta_out_and_in_and_iceberg_from_a_folder_of_jars(tables: Path, tmp_path: Path) -> None:
    """calibrate writes Delta with what the resolver brings; score reads that, and writes Iceberg offline."""
    output = {"path": str(tmp_path / "calibrated"), "format": "delta", "partition": DAY}
    first = submit("jobs/calibrate.py", "--config", write_config(tmp_path, tables, output=output, **OFFICIAL))
    assert first.exit_code == 0, first.stderr[-3000:]
    assert first.summary["paths"]["output"] == str(tmp_path / "calibrated")
    log = [
        json.loads(p.read_text().splitlines()[0]) for p in (tmp_path / "calibrated/_delta_log").glob("*.json")
    ]
    assert len(log) == 1
    assert log[0]["commitInfo"]["operationMetrics"]["numOutputRows"] == str(ROWS)

    jars = tmp_path / "jars"
    command = [sys.executable, "-m", "mcspark.runtime.formats", str(jars), "delta", "iceberg"]
    filled = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT)
    assert filled.returncode == 0, filled.stderr[-2000:]
    assert sorted(filled.stdout.split()) == sorted(map(str, jars.iterdir()))
    nowhere = tmp_path / "ivysettings.xml"
    nowhere.write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers><filesystem name="none">'
        f'<artifact pattern="{tmp_path}/nothing/[artifact].[ext]"/></filesystem></resolvers></ivysettings>'
    )
    offline = {"spark.jars.ivy": str(tmp_path / "ivy"), "spark.jars.ivySettings": str(nowhere)}
    config = write_config(
        tmp_path, tables,
        scored={"path": str(tmp_path / "calibrated"), "format": "delta", "partition": DAY, "key": KEY},
        output={"path": str(tmp_path / "again"), "format": "iceberg", "partition": DAY},
    )  # fmt: skip
    again = submit("jobs/score.py", "--config", config, conf=offline, env={"MCSPARK_JARS": str(jars)})
    assert again.exit_code == 0, again.stderr[-3000:]
    assert again.summary["rows"] == {"in": ROWS, "scored": ROWS, "rejected": 0, "labelled": ROWS}
    assert scores(tmp_path / "calibrated").equals(scores(tmp_path / "again" / "data"))

    missing = submit("jobs/score.py", "--config", config, conf=offline, env={"MCSPARK_JARS": None})
    assert (missing.exit_code, missing.summary["status"]) == (2, "configuration")
    assert "io.delta:delta-spark_2.12:3.3.3 is not on the class path" in missing.summary["error"]


def scores(folder: Path) -> pd.DataFrame:
    files = [pq.ParquetFile(p).read([*KEY, "calibrated_score"]) for p in folder.rglob("*.parquet")]
    return pd.concat([f.to_pandas() for f in files]).sort_values(KEY, ignore_index=True)


@pytest.fixture(scope="module")
def s3() -> Iterator[tuple[Any, dict[str, str]]]:
    """A bucket of a real S3-compatible server on loopback, and what Spark must know to reach it."""
    try:
        from moto.server import ThreadedMotoServer

        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
    except Exception as error:
        pytest.skip(f"no S3 server: {error}")
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    client = boto3.client(
        "s3", endpoint_url=endpoint, aws_access_key_id="test", aws_secret_access_key="test",
        region_name="us-east-1",
    )  # fmt: skip
    client.create_bucket(Bucket=BUCKET)
    settings = {
        "endpoint": endpoint,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "access.key": "test",
        "secret.key": "test",
        "attempts.maximum": "2",
    }
    yield client, {f"spark.hadoop.fs.s3a.{key}": value for key, value in settings.items()}
    server.stop()


def names(client: Any, prefix: str) -> list[str]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
    keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
    return [key for key in keys if not key.endswith("/")]  # marks of folders come and go


def contents(client: Any, prefix: str) -> dict[str, str]:
    return {key: client.head_object(Bucket=BUCKET, Key=key)["ETag"] for key in names(client, prefix)}


def pointed(client: Any, key: str) -> str:
    pointer: dict[str, str] = json.loads(client.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    assert set(pointer) == {"run_id"}
    return pointer["run_id"]


def test_everything_on_s3(s3: Any, tables: Path, tmp_path: Path) -> None:
    """Tables, model, report and manifest below s3a://; a run again, a neighbour, a run that is killed
    between two pointers, a gate that is not met."""
    client, conf = s3
    for file in tables.rglob("*.parquet"):
        client.upload_file(str(file), BUCKET, f"in/{file.relative_to(tables)}")
    root = f"s3a://{BUCKET}"
    sections: dict[str, Any] = {
        "scored": {"path": f"{root}/in/scored", "key": KEY},
        "attributes": [{"path": f"{root}/in/attributes", "key": KEY}],
        "output": {"path": f"{root}/out/calibrated", "partition": DAY},
        "model": {"path": f"{root}/out/model"},
        "report": {"path": f"{root}/out/report.html"},
        **OFFICIAL,
    }
    config = write_config(tmp_path, tables, **sections)
    jobs, here = tmp_path / "jobs.json", ["--config", str(config)]
    eve = ["--set", "output.partition={ds: 2026-11-25}"]
    done, neighbour = submit_jobs(jobs, ["calibrate", *here], ["score", *here, *eve], conf=conf)
    assert (done.exit_code, neighbour.exit_code) == (0, 0), done.stderr[-3000:]
    leaf = "out/calibrated/ds=2026-11-26"
    run = f"{leaf}/_runs/{done.summary['run_id']}"
    assert done.summary["paths"]["output"] == f"{root}/{run}"
    assert pointed(client, f"{leaf}/_current.json") == done.summary["run_id"]
    published = downloaded(client, run, tmp_path / "first")
    assert len(published) == ROWS
    before = contents(client, "out/calibrated/ds=2026-11-25")
    left = {key for key in names(client, "out") if "/." in key}
    assert not left, left
    assert {"out/model/model.json", "out/report.html"} <= set(names(client, "out"))

    again = submit("jobs/score.py", "--config", config, conf=conf)
    assert again.exit_code == 0, again.stderr[-3000:]
    rows = downloaded(client, f"{leaf}/_runs/{again.summary['run_id']}", tmp_path / "second")
    np.testing.assert_array_equal(rows["calibrated_score"], published["calibrated_score"])
    assert contents(client, "out/calibrated/ds=2026-11-25") == before

    everything = contents(client, "out")
    jobs.write_text(json.dumps([["score", *here]]))
    dead = submit("tests/faults/child.py", "die-between-pointers", jobs, conf=conf)
    assert dead.exit_code not in (0, 1, 2, 3), dead.stderr[-3000:]
    pointers = [f"out/calibrated{kind}/ds=2026-11-26/_current.json" for kind in ("", "_rejected")]
    assert len({pointed(client, key) for key in pointers}) == 2, "it did not die between the two"

    # The next run puts both back, though it publishes nothing itself.
    strict = ["--set", "gate.max_mc_error=0", "--set", "calibrator.max_trees=2"]
    over = [
        "--set", f"scored.path={root}/out/calibrated", "--set", "scored.partition={ds: 2026-11-26}",
        "--set", f"output.path={root}/audit/of_output", "--set", f"report.path={root}/audit/report.html",
    ]  # fmt: skip
    refused, audited = submit_jobs(jobs, ["calibrate", *here, *strict], ["audit", *here, *over], conf=conf)
    assert (refused.exit_code, refused.summary["status"]) == (4, "gate"), refused.stderr[-3000:]
    assert {pointed(client, key) for key in pointers} == {again.summary["run_id"]}
    kept = contents(client, "out")
    assert {key: kept.get(key) for key in everything} == everything

    assert audited.exit_code == 0, audited.stderr[-3000:]
    assert audited.summary["rows"]["in"] == ROWS
    found, first = (s["metrics"]["before"]["by_level"]["20"] for s in (audited.summary, done.summary))
    assert found["mc_error"] == pytest.approx(first["mc_error"], abs=1e-12)


def downloaded(client: Any, prefix: str, folder: Path) -> pd.DataFrame:
    folder.mkdir()
    for i, key in enumerate(k for k in names(client, prefix) if k.endswith(".parquet")):
        client.download_file(BUCKET, key, str(folder / f"{i}.parquet"))
    return pd.read_parquet(folder).sort_values(KEY, ignore_index=True)

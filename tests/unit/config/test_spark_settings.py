"""The examples in `conf/spark`: what training needs is the same in all of them, and the untested say so."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[3] / "conf" / "spark"
NEEDED = {
    "spark.dynamicAllocation.enabled": "false",
    "spark.speculation": "false",
    "spark.task.reaper.enabled": "true",
}


def properties(name: str) -> dict[str, str]:
    lines = (line.strip() for line in (FOLDER / name).read_text().splitlines())
    return dict(line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))


def application() -> dict:
    return yaml.safe_load((FOLDER / "kubernetes.yaml").read_text())


@pytest.mark.parametrize("name", ["spark-defaults.conf", "standalone.conf", "yarn.conf", "kubernetes.yaml"])
def test_training_has_what_it_needs(name):
    conf = application()["spec"]["sparkConf"] if name.endswith("yaml") else properties(name)
    assert {key: conf.get(key) for key in NEEDED} == NEEDED
    assert not [key for key, value in conf.items() if not isinstance(value, str)]


def test_kubernetes_tries_no_job_twice_and_mounts_where_it_unpacks():
    spec = application()["spec"]
    assert spec["restartPolicy"] == {"type": "Never"}
    assert spec["mainApplicationFile"].endswith("/jobs/calibrate.py")
    for role in ("driver", "executor"):
        (mount,) = spec[role]["volumeMounts"]
        assert spec["sparkConf"][f"spark.{role}.extraJavaOptions"] == f"-Djava.io.tmpdir={mount['mountPath']}"


def test_what_nobody_has_run_says_so():
    untested = {file.name for file in FOLDER.iterdir() if "UNTESTED" in file.read_text()}
    assert untested == {"yarn.conf", "kubernetes.yaml", "managed.md"}

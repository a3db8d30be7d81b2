"""A Spark elsewhere: who names it, and where relative paths begin then."""

from __future__ import annotations

import json

from mcspark.config import load_config
from mcspark.config.remote import remote_address

GIVEN = {"PYSPARK_REMOTE_INIT_CONF_LEN": "2", "PYSPARK_REMOTE_INIT_CONF_0": "{}"}


def test_who_names_it():
    assert remote_address({}) is None
    assert remote_address({"SPARK_REMOTE": ""}) is None
    assert remote_address({"SPARK_REMOTE": "sc://one"}) == "sc://one"
    submitted = {**GIVEN, "PYSPARK_REMOTE_INIT_CONF_1": json.dumps({"spark.remote": "sc://two"})}
    assert remote_address(submitted) == "sc://two"
    assert remote_address({**GIVEN, "PYSPARK_REMOTE_INIT_CONF_1": "{}"}) is None


def test_relative_paths_begin_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = [
        "scored.path=in/scored", "scored.key=[id]", "attributes=[{path: /abs/a, key: [id]}]",
        "groups.columns=[{column: job}]", "output.path=out", "model.path=s3a://bucket/model",
    ]  # fmt: skip
    there = load_config(None, given, environ={"SPARK_REMOTE": "sc://one"})
    assert (there.scored.path, there.attributes[0].path) == (f"{tmp_path}/in/scored", "/abs/a")
    assert there.output is not None
    assert there.model is not None
    assert (there.output.path, there.model.path) == (f"{tmp_path}/out", "s3a://bucket/model")
    here = load_config(None, given, environ={})
    assert here.scored.path == "in/scored"

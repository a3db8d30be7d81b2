"""The tutorial from a model to a warehouse and a web service: its programs, run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from scorer_models import model, people, write
from typer.testing import CliRunner

from mcspark.cli.app import app
from mcspark.scorer import Scorer

PAGE = Path(__file__).parents[3] / "docs/use/serving.md"


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a model and people, as the page has them."""
    (tmp_path / "data").mkdir()
    write(model(("logit",)), tmp_path / "data")
    people(500).rename_axis("id").reset_index().to_parquet(tmp_path / "people.parquet", index=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("here")
def test_the_warehouse_computes_the_scores(capsys):
    (command,) = blocks("sh")
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert done.exit_code == 0, done.output
    load, compare, _ = blocks("python")
    names = {}
    exec(load, names)
    assert "calibrated_score" in capsys.readouterr().out
    exec(compare, names)
    assert len(names["expected"]) == 500
    names["warehouse"].close()


@pytest.mark.usefixtures("here")
def test_the_service_answers_with_scores_reasons_and_refusals():
    *_, service = blocks("python")
    names = {}
    exec(service, names)
    client, scorer = TestClient(names["app"]), Scorer.load("data/model")
    for row in people(50).to_dict("records"):
        answer = client.post("/score", json=row)
        assert answer.json() == {"calibrated_score": scorer.score_one(row)}
    row = {"score": 0.31, "SEX": None, "AGEP": 67, "OCCP": 4700, "job": "never seen"}
    assert client.post("/score", json=row).status_code == 200
    assert client.post("/explain", json=row).json()["calibrated"] == scorer.score_one(row)
    assert client.get("/columns").json() == ["score", "SEX", "AGEP", "OCCP", "job"]
    for change, words in (
        ({"score": 1.5}, "outside [0, 1]"),
        ({"SEX": "2"}, "SEX"),
        ({"job": [1]}, "attribute"),
    ):
        answer = client.post("/score", json={**row, **change})
        assert (answer.status_code, words in answer.json()["detail"]) == (422, True)
    del row["job"]
    assert "no column 'job'" in client.post("/explain", json=row).json()["detail"]

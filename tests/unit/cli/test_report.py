"""`mcspark report RUN`: the page again, from what the run has left."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from report_runs import GROUPS, calibrated
from scorer_models import form, model, write

from mcspark.cli import report as module
from mcspark.cli.report import draw_again
from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.core.model.stages import Stage, Stages
from mcspark.errors import ConfigurationError, ContractError
from mcspark.report import page as page_module
from mcspark.report.page import render
from mcspark.report.pictures import SECTIONS


@pytest.fixture(autouse=True)
def without_pictures(monkeypatch):
    """Drawing takes seconds, and other tests look at the pictures."""
    monkeypatch.setattr(page_module, "_drawn", lambda facts: ({name: [] for name in SECTIONS}, None))


def run_of(tmp_path, **paths):
    """A run without a training curve, which no run leaves."""
    facts = replace(calibrated(), curves=None, pairs=None, training=None, dropped=())
    folder = tmp_path / "metrics"
    folder.mkdir()
    facts.metrics.to_parquet(folder / "part-0.parquet", index=False)
    manifest = {
        **facts.summary,
        "paths": {"metrics": f"file:{folder}", **paths},
        "configuration": facts.configuration,
        "versions": facts.versions,
        "schema_version": 1, "job": "calibrate", "status": "ok", "configuration_hash": "x",
        "seconds": {"fit": 1.0},
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(manifest))
    return facts, manifest, str(tmp_path / "run.json")


def test_the_page_is_that_of_the_run(tmp_path):
    facts, _, run = run_of(tmp_path)
    told = list(draw_again(run, str(tmp_path / "again.html")))
    assert told == [f"The report of run {facts.summary['run_id']} is in {tmp_path / 'again.html'}."]
    assert (tmp_path / "again.html").read_text() == render(facts)
    with pytest.raises(ConfigurationError, match="exists"):
        list(draw_again(run, str(tmp_path / "again.html")))


def test_what_the_calibrator_does_is_drawn_while_the_model_is_of_that_run(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(module, "render", lambda facts: drawn.append(facts) or "page")
    families = [Family("predicate", name, (1,), where="`a` = 1", columns=("a",)) for name in GROUPS]
    groups = FittedGroups(tuple(families))
    stage = Stage("identity", form(len(GROUPS), 9, np.random.default_rng(1)), 3)
    saved = replace(model(()), groups=groups, calibrator=Stages((stage,), groups.names), method="trees")
    folder = write(saved, tmp_path)
    facts, _, run = run_of(tmp_path, model=str(folder))
    page = tmp_path / "again.html"
    for maker, said, known in (
        ("calibrate-20261128T010203Z-ffffffff", "is of run calibrate-20261128T010203Z-ffffffff", False),
        (facts.summary["run_id"], "the loss as trees were added", True),
    ):
        (folder / "run.json").write_text(json.dumps({"run_id": maker}))
        told = list(draw_again(run, str(page), force=True))
        assert said in told[1]
        assert (drawn[-1].curves is not None) is known
    assert set(drawn[-1].curves["group"].dropna()) == set(GROUPS)
    assert len(drawn[-1].pairs) == len(stage.form.pairs)


def test_labels_come_from_the_configuration_of_the_run(tmp_path):
    facts, manifest, run = run_of(tmp_path)
    worst = facts.table.worst_first()[0]
    column, value = "any", "1"
    text = json.dumps(manifest).replace(json.dumps(worst)[1:-1], f"{column}={value}")
    manifest = json.loads(text)
    groups = {"columns": [{"column": column, "title": "Any", "labels": {value: "One"}}]}
    (tmp_path / "run.json").write_text(json.dumps({**manifest, "configuration": {"groups": groups}}))
    metrics = facts.metrics.replace({"group": {worst: "any=1"}})
    metrics.to_parquet(tmp_path / "metrics" / "part-0.parquet", index=False)
    list(draw_again(run, str(tmp_path / "again.html")))
    assert "Any: One" in (tmp_path / "again.html").read_text()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"run_id": 3}, "not the manifest of a run"),
        ({"configuration": None}, "not the manifest of a run"),
        ({"paths": {}}, "its metrics, none, are not on this machine"),
        ({"paths": {"metrics": "/nowhere"}}, "its metrics, /nowhere, are not on this machine"),
        ({"rows": 3}, "not a manifest that a report can be drawn from"),
    ],
)
def test_what_a_page_cannot_be_drawn_from_is_refused(tmp_path, change, words):
    _, manifest, run = run_of(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({**manifest, **change}))
    with pytest.raises(ContractError, match=words):
        list(draw_again(run, str(tmp_path / "again.html")))
    assert not (tmp_path / "again.html").exists()

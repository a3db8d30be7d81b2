"""`mcspark diff`: what differs between two models or two runs, as text, JSON and a page."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from report_runs import GROUPS, audited, calibrated
from scorer_models import model, people, write

from mcspark.cli.diff import diff
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.model.stages import Stage, Stages
from mcspark.errors import ConfigurationError, ContractError
from mcspark.report.facts import number
from mcspark.scorer import Scorer


def changed(saved, group, by):
    """The same, with a curve that is higher for one group above a score of a half."""
    (stage,) = saved.calibrator.stages
    curves = stage.form.curves.copy()
    above = np.append(stage.form.thresholds, 1.0) > 0.5
    curves[saved.groups.names.index(group), above] += by
    form = replace(stage.form, curves=curves)
    return replace(saved, calibrator=Stages((Stage("identity", form, 7),), saved.groups.names))


def two(tmp_path, other):
    for name, saved in (("a", small()), ("b", other)):
        (tmp_path / name).mkdir()
        write(saved, tmp_path / name)
    return str(tmp_path / "a" / "model"), str(tmp_path / "b" / "model")


def small():
    saved = model(("identity",), condition=False)
    (stage,) = saved.calibrator.stages
    form = replace(stage.form, base=stage.form.base / 100, curves=stage.form.curves / 100, constant=0.0)
    return replace(saved, calibrator=Stages((Stage("identity", form, 7),), saved.groups.names))


def test_the_curve_that_has_moved_comes_first_and_rows_move_by_it(tmp_path):
    a, b = two(tmp_path, changed(small(), "job=a", 0.03))
    table = people(2000)
    table.to_parquet(tmp_path / "people.parquet")
    found = json.loads(diff(a, b, str(tmp_path / "people.parquet"), as_json=True))
    assert found["groups_of_a"] == found["groups_of_b"] == []
    curves = {c["group"]: c for c in found["curves"]}
    # Who is in the intersection is in the group.
    assert next(iter(curves)) == "(in no group)"
    assert set(list(curves)[1:3]) == {"job=a", "SEX=2 & job=a"}
    assert curves["(in no group)"]["mean"] == curves["SEX=1"]["mean"] == 0
    assert curves["job=a"]["largest"] == pytest.approx(0.03)
    assert curves["job=a"]["mean"] == pytest.approx(0.015, abs=0.001)
    moved = Scorer.load(b).score(table) - Scorer.load(a).score(table)
    moves = found["moves"]
    assert (moves["rows"], moves["down"]) == (2000, 0)
    assert moves["up"] == (moved > 0.01).sum() > 100
    assert moves["mean"] == pytest.approx(moved.mean())
    assert moves["largest"] == pytest.approx(np.abs(moved).max())
    assert moves["bands"] == np.histogram(moved, [0, 0.001, 0.01, 0.05, 0.1, 0.2, 1])[0].tolist()
    rows, job = {g: rest for g, *rest in moves["groups"]}, table["job"] == "a"
    assert rows["job=a"] == pytest.approx([job.sum(), moved[job].mean(), (moved[job] > 0.01).mean()])
    text = diff(a, b, str(tmp_path / "people.parquet"))
    assert f"{moves['up']:,} up, 0 down" in text
    assert ["job=a", number(curves["job=a"]["mean"]), "+0.0300"] in [
        line.split()[:3] for line in text.splitlines()
    ]


def test_two_models_that_are_the_same_are_said_to_be(tmp_path):
    a, b = two(tmp_path, small())
    table = people(50)
    table.to_parquet(tmp_path / "people.parquet")
    for one, other in ((a, a), (a, b), (a, f"file:{b}/model.json")):
        text = diff(one, other, str(tmp_path / "people.parquet"))
        assert "The two models give every row the same score." in text
        assert "Of 50 rows, 0 move by more than 0.01" in text
        assert not any(
            words in text for words in ("Corrections that differ", "scores move most", "later run")
        )
        assert json.loads(diff(one, other, as_json=True))["same"] is True
    (tmp_path / "other").mkdir()
    a, b = two(tmp_path / "other", changed(small(), "job=a", 0.03))
    text = diff(a, b)
    assert "the same score" not in text
    assert json.loads(diff(a, b, as_json=True))["same"] is False
    # Groups that have not moved are in the JSON alone.
    assert ("job=a" in text, "SEX=1 " in text) == (True, False)


def test_groups_that_only_one_has_are_named(tmp_path):
    saved = small()
    families = saved.groups.families[:3]
    groups = FittedGroups(families)
    (stage,) = saved.calibrator.stages
    none = {"pairs": stage.form.pairs[:0], "pair_values": stage.form.pair_values[:0]}
    form = replace(stage.form, curves=stage.form.curves[: len(groups.names)], **none)
    other = replace(saved, groups=groups, calibrator=Stages((Stage("identity", form, 7),), groups.names))
    text = diff(*two(tmp_path, other))
    assert "Only in A: job=a, job=b, SEX=1 & AGEP=[30,60), SEX=2 & job=a." in text
    assert "Only in B" not in text


def run_of(tmp_path, name, facts, **more):
    folder = tmp_path / f"{name}_metrics"
    folder.mkdir()
    facts.metrics.to_parquet(folder / "part-0.parquet", index=False)
    manifest = {**facts.summary, "paths": {"metrics": str(folder), **more}, "run_id": name}
    (tmp_path / f"{name}.json").write_text(json.dumps(manifest))
    return str(tmp_path / f"{name}.json")


def test_two_runs_are_compared_by_their_metrics_and_levels(tmp_path):
    a, b = run_of(tmp_path, "first", audited()), run_of(tmp_path, "second", calibrated(), model="gone/model")
    found = json.loads(diff(a, b, as_json=True))
    metrics = {m["metric"]: m for m in found["metrics"]}
    assert len(metrics) == len(found["metrics"])
    assert metrics["squared loss"]["b"] == calibrated().table.value("after", "loss")
    error = metrics["MC error, 20 levels"]
    assert error["a"] == audited().table.value("before", "mc_error", 20)
    assert error["b"] == calibrated().table.value("after", "mc_error", 20)
    assert error["b_interval"] == list(calibrated().interval)
    assert found["groups_of_both"] == list(GROUPS)
    assert any("The model of B is left out: gone/model" in note for note in found["notes"])
    every, *groups = found["levels"]
    assert every["group"] is None
    assert sum(every["a"]) == pytest.approx(1)
    # Level by level, the mean score moves no less than the means say.
    assert 0 < every["least_move"] < 0.2
    assert groups[0]["least_move"] == max(g["least_move"] for g in groups)
    same = json.loads(diff(a, a, as_json=True))
    assert all(m["a"] == m["b"] for m in same["metrics"])
    assert same["levels"][0]["least_move"] == 0


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)


def test_the_page_holds_names_as_text_and_the_same_bytes_each_time(tmp_path):
    a, b = run_of(tmp_path, "first", audited()), run_of(tmp_path, "second", calibrated())
    diff(a, b, page=str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert "&lt;script&gt;alert(&#39;group&#39;)" in page
    assert "script" not in Tags(page).tags
    models = two(tmp_path, changed(small(), "job=a", 0.03))
    diff(*models, page=str(tmp_path / "models.html"))
    page = (tmp_path / "models.html").read_text()
    assert Tags(page).tags.count("svg") == 1
    assert "in A (dashed) and in B (solid)" in page
    with pytest.raises(ConfigurationError, match="exists"):
        diff(*models, page=str(tmp_path / "models.html"))
    diff(*models, page=str(tmp_path / "models.html"), force=True)
    assert (tmp_path / "models.html").read_text() == page


def test_what_cannot_be_compared_is_refused(tmp_path):
    a, b = run_of(tmp_path, "first", audited()), run_of(tmp_path, "second", calibrated())
    pd.DataFrame({"score": [0.5]}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ContractError, match="models of both sides"):
        diff(a, b, str(tmp_path / "rows.parquet"))
    models = two(tmp_path, small())
    with pytest.raises(ContractError, match=r"rows.parquet: the table has no column 'SEX'"):
        diff(*models, str(tmp_path / "rows.parquet"))
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ContractError, match="no run_id"):
        diff(a, str(tmp_path / "other.json"))
    with pytest.raises(ContractError, match="no readable"):
        diff(a, str(tmp_path / "nowhere.json"))

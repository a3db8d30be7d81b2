"""Titles and labels in what people read: the report, an explanation, a model that is shown."""

from __future__ import annotations

import json
from dataclasses import replace

from report_runs import calibrated
from scorer_models import model, people, write

from mcspark.cli.explain import explain
from mcspark.cli.show import shown
from mcspark.cli.text import Form
from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.report import page as page_module
from mcspark.report.facts import RunFacts
from mcspark.report.names import with_names
from mcspark.report.page import render
from mcspark.report.pictures import SECTIONS
from mcspark.scorer import Scorer

RACE = Family("value", "RAC1P", title="Race", labels=(("1", "<b>White</b>"), ("3", "Other")))


def renamed() -> RunFacts:
    """A run whose first group is a race."""
    found, old = calibrated(), calibrated().table.worst_first()[0]

    def of(frame):
        return frame.replace({column: {old: "RAC1P=1"} for column in frame.select_dtypes(object)})

    return replace(
        found, metrics=of(found.metrics), curves=of(found.curves), pairs=of(found.pairs),
        dropped=[("RAC1P=3", "too small")], summary={**found.summary, "drift": None},
    )  # fmt: skip


def test_the_report_calls_groups_by_their_labels_and_lists_their_ids(monkeypatch):
    # Drawing takes seconds, and other tests look at the pictures.
    monkeypatch.setattr(page_module, "_drawn", lambda facts: ({name: [] for name in SECTIONS}, None))
    plain, named = renamed(), with_names(renamed(), [RACE])
    assert plain.table.worst_first()[0] == "RAC1P=1"
    assert named.table.worst_first()[0] == "Race: <b>White</b>"
    assert named.ids == {"Race: <b>White</b>": "RAC1P=1", "Race: Other": "RAC1P=3"}
    assert named.dropped == [("Race: Other", "too small")]
    assert "Race: <b>White</b>" in set(named.curves["group"])
    assert not {"RAC1P=1"} & {*named.curves["group"], *named.pairs["first"], *named.pairs["second"]}
    page = render(named)
    assert "Race: &lt;b&gt;White&lt;/b&gt;" in page
    assert "<b>White" not in page
    assert page.count("RAC1P=1") == 1  # among the ids
    assert with_names(plain, []) is plain


def test_a_model_is_shown_and_explained_by_labels_and_its_json_has_the_ids(tmp_path):
    saved = model(("identity",), condition=False)
    sex = replace(saved.groups.families[0], title="Sex", labels=(("1", "Men"), ("2", "Women")))
    groups = FittedGroups((sex, *saved.groups.families[1:]), saved.groups.pairs)
    folder = write(replace(saved, groups=groups), tmp_path)
    row = json.dumps({"score": 0.4, "SEX": 2, "AGEP": 70, "OCCP": 120, "job": "a"})
    text = explain(str(folder), row, None, None, None, Form.text)
    assert "Sex: Women" in text
    assert "SEX=2" not in text
    assert "SEX=2" in explain(str(folder), row, None, None, None, Form.json)
    assert "Sex: Men" in shown(str(folder), groups=20)
    assert "SEX=" not in shown(str(folder), groups=20)
    assert (Scorer.load(folder).score(people(50)) == Scorer(saved).score(people(50))).all()

"""The report and the model card: verdicts, words, escaping, and the same bytes for the same input."""

from __future__ import annotations

import base64
import io
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
import pytest
from outline import Outline
from report_runs import GROUPS, audited, calibrated, population, rare

from mcspark.core.cells.cells import Role
from mcspark.core.training.recipe import Candidate
from mcspark.report import page as page_module
from mcspark.report.card import card
from mcspark.report.facts import count, number
from mcspark.report.page import render
from mcspark.report.pictures import SECTIONS

SUM = """
import hashlib, sys
import matplotlib as mpl
mpl.rcParams["font.size"] = 17
from report_runs import calibrated
from mcspark.report.page import render
page = render(calibrated())
assert "matplotlib.pyplot" not in sys.modules, "the state of pyplot"
print(hashlib.sha256(page.encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def page():
    return render(calibrated())


def test_another_process_makes_the_same_bytes(page):
    import hashlib

    here = Path(__file__).parent
    path = [str(here), str(here.parent / "core"), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", SUM],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == hashlib.sha256(page.encode()).hexdigest()


def test_the_page_stands_alone(page):
    outline = Outline(page)
    assert outline.tags["script"] == outline.tags["link"] == outline.tags["img"] == 0
    assert all(link.startswith(("#", "data:image/png;base64,", "data:text/csv;")) for link in outline.links)
    assert not re.search(r"url\((?!#)", page)
    assert "@import" not in page
    assert not [name for name, n in Counter(outline.ids).items() if n > 1]
    targets = {link[1:] for link in outline.links if link.startswith("#")}
    assert targets <= set(outline.ids)


def test_sections_come_in_their_order(page):
    heads = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert heads == [
        "Rows", "Error against the grid", "The score as a whole", "Reliability", "Gaps by group and level",
        "Groups", "Decisions", "What the calibrator does", "Is there more to gain?", "Model and data",
        "What the metrics mean", "Configuration and versions",
    ]  # fmt: skip


def test_names_are_text_and_nothing_else(page):
    outline = Outline(page)
    assert outline.tags["b"] == 0
    words = "".join(outline.text)
    for name in GROUPS:
        assert name.strip() in words
    assert "</pre><script>alert('path')</script>" in words
    assert "21 rows have attributes and no category of <b>age" in words


def test_every_picture_has_words(page):
    pictures = re.findall(r'<svg .*?role="img" aria-labelledby="(\S+) (\S+)".*?</svg>', page, re.DOTALL)
    assert len(pictures) == page.count("<figure ") == 10
    for title, words in pictures:
        assert re.search(rf'<title id="{title}">[^<]+</title>', page)
        assert len(re.search(rf'<desc id="{words}">([^<]+)</desc>', page)[1]) > 60


def test_the_verdict_carries_the_numbers(page):
    facts = calibrated()
    for stage in ("before", "after"):
        found = facts.summary["metrics"][stage]
        for value in (found["by_level"]["20"]["mc_error"], found["worst_group_smece"], found["loss"]):
            assert number(value) in facts.verdict
    level = facts.summary["metrics"]["after"]["by_level"]["20"]
    for value in (level["noise_floor"], *level["interval"]):
        assert number(value) in facts.verdict
    assert facts.verdict.count(". ") == 0
    assert level["worst_group"] in facts.verdict
    assert "<strong>" in page


def altered(**values):
    """The calibrated run with other numbers after, on the grid of the report."""
    facts = calibrated()
    metrics = facts.metrics.copy()
    for name, value in values.items():
        rows = (metrics["stage"] == "after") & (metrics["metric"] == name) & (metrics["levels"] == 20)
        assert rows.sum() == 1
        metrics.loc[rows, "value"] = value
    return replace(facts, metrics=metrics)


@pytest.mark.parametrize(
    ("values", "standing", "words"),
    [
        ({"p_value": 0.05}, "yes", "no more than chance explains"),
        ({"p_value": 0.05, "noise_floor_high": 0.051}, "unclear", "Too few rows to tell"),
        ({"p_value": 0.049}, "better", "closer to, but still above"),
        ({"p_value": 0.02, "mc_error": 0.9}, "no", "more than chance explains"),
    ],
)
def test_verdicts(values, standing, words):
    facts = altered(**values)
    assert facts.standing == standing
    assert words in facts.verdict


@pytest.mark.parametrize(("rows", "standing"), [(99, "unclear"), (100, "yes")])
def test_a_handful_of_rows_is_no_proof(rows, standing):
    facts = calibrated()
    metrics = facts.metrics.copy()
    metrics.loc[(metrics["stage"] == "after") & (metrics["metric"] == "rows"), "value"] = rows
    assert replace(facts, metrics=metrics).standing == standing


def test_a_picture_that_cannot_be_drawn_costs_the_pictures_alone(monkeypatch):
    def fail(*_):
        raise ValueError("no such <font>")

    monkeypatch.setattr("mcspark.report.plots.error_by_grid", fail)
    page = render(calibrated())
    assert "The pictures could not be drawn (no such &lt;font&gt;)" in page
    assert "<figure" not in page
    assert number(calibrated().last("mc_error", 20)) in page


def test_an_audit_speaks_of_one_score():
    page = render(audited())
    words = " ".join(Outline(page).text)
    assert audited().standing == "no"
    assert 'class="verdict no"' in page
    assert "→" not in page
    assert "after" not in re.sub(r"after (a|its|the)\b", "", words)
    assert "What the calibrator does" not in words
    assert "after" not in card(audited())


def test_nothing_to_judge_is_said():
    facts = audited(nothing=True)
    assert facts.verdict.startswith("There is nothing to judge")
    page = render(facts)
    assert facts.verdict[len(facts.answer) :] in page
    assert "nan" not in Outline(page).text
    assert "<figure" not in page
    assert facts.verdict.rstrip(".") in card(facts)


def test_whatever_could_not_be_measured_is_a_dash_and_no_failure(monkeypatch):
    facts = calibrated()
    monkeypatch.setattr(page_module, "_drawn", lambda _: ({name: [] for name in SECTIONS}, None))
    names = sorted(set(facts.metrics["metric"]))
    for lacking in [*([name] for name in names), [name for name in names if name != "rows"]]:
        metrics = facts.metrics.copy()
        metrics.loc[metrics["metric"].isin(lacking), "value"] = float("nan")
        without = replace(facts, metrics=metrics)
        assert "Is there more to gain?" in render(without), lacking
        assert without.verdict in card(without).replace("\\", ""), lacking


def test_a_method_without_curves_and_a_fit_that_gained_nothing():
    facts = replace(
        calibrated(),
        summary={**calibrated().summary, "stages": [], "saturation": None},
        curves=None,
        pairs=None,
        training=None,
    )
    page = render(facts)
    assert "nothing was gained on held-out rows" in page
    assert "What the calibrator does" not in page


def test_two_stages_have_curves_each():
    facts = calibrated(rounds=2)
    assert len(facts.summary["stages"]) == 2
    page = render(facts)
    assert [f"Correction by score, stage {k}" in page for k in (1, 2, 3)] == [True, True, False]


def test_rows_know_their_place_in_every_order(page):
    groups = calibrated().groups()
    rows = re.findall(r'<tr role="row" style="(.*?)">', page)
    places = [dict(re.findall(r"--(\w+):(\d+);", row)) for row in rows]
    assert [int(p["error_before"]) for p in places if p] == list(range(1, len(GROUPS) + 1))
    by_rows = sorted(range(len(groups)), key=lambda i: -groups["rows"][i])
    assert [int(places[i]["rows"]) for i in by_rows] == list(range(1, len(GROUPS) + 1))


def test_the_card_has_the_same_numbers_and_no_markup_of_others():
    facts = calibrated()
    text = card(facts)
    for m in (10, 20):
        assert number(facts.last("mc_error", m)) in text
    assert count(facts.last("rows")) in text
    assert "<script>" not in text
    assert r"a\|b\*c\_d \[link\](x)" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in tables)
    widths = Counter(len(re.findall(r"(?<!\\)\|", line)) for line in tables)
    assert set(widths) == {4, 6, 7, 9}
    assert "Limits" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0.12345, "0.1235"),
        (0.0, "0.0000"),
        (0.00023456, "0.00023"),
        (-1e-12, "-0.0000000"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text
    assert count(1234567.0) == "1,234,567"


def test_a_rare_label_is_judged_without_the_grids_that_are_blind_to_its_scores():
    facts = rare()
    before, after = (facts.summary["metrics"][stage] for stage in ("before", "after"))
    assert before["by_level"]["20"]["mc_error"] == after["by_level"]["20"]["mc_error"]
    assert facts.standing == "yes"
    assert facts.worst_group == "everyone"
    for text in (facts.verdict, " ".join(Outline(render(facts)).text), card(facts)):
        assert "the multiaccuracy error of the score itself went from" in text
        assert f"went from {number(before['ma_error'])} to {number(after['ma_error'])}" in text
        assert f"noise floor {number(after['ma_noise_floor'])}" in text
        assert "the multicalibration error went" not in text
        assert number(before["by_level"]["20"]["mc_error"]) not in facts.verdict
    words = " ".join(Outline(render(facts)).text)
    assert "MC error, 20 levels" not in words
    for text in (words, card(facts)):
        plain = text.replace("\\", "")
        assert "at 10, 20, 75 levels is blind to these scores" in plain
        assert "100.0 % in [0, 0.05) of 20 levels" in plain
        assert "20 (blind)" in plain
        assert "MA error before" in plain
    assert "On no grid" not in words


def test_a_grid_that_sees_is_spoken_of_where_the_usual_one_is_blind():
    facts = rare(0.03, factor=1.5)
    error = facts.summary["metrics"]["after"]["by_level"]["75"]["mc_error"]
    assert facts.lead.blind_grids == (10, 20)
    assert "at 75 levels on 40,000 held-out rows the multicalibration error went" in facts.verdict
    assert number(error) in facts.verdict
    page = " ".join(Outline(render(facts)).text)
    assert "MC error, 75 levels" in page
    assert "On no grid that sees is the error more than chance explains" in page


def test_a_handful_of_rare_labels_is_no_proof():
    facts = rare()
    metrics = facts.metrics.copy()
    metrics.loc[(metrics["stage"] == "after") & (metrics["metric"] == "ma_noise_floor_high"), "value"] = 3e-4
    assert facts.last("mean_label") == pytest.approx(4e-4, rel=0.3)
    assert replace(facts, metrics=metrics).standing == "unclear"


def test_the_recipe_and_a_cap_that_was_reached_are_told():
    facts = calibrated()
    candidate = Candidate("logit", 1.0, 20, (1200, 3), 0.171234, chosen=True, why="the first <candidate>")
    chosen = {"link": "logit", "learning_rate": 1.0, "min_rows_in_leaf": 20, "rounds": 2, "refit": True}
    recipe = {"name": "auto", "chosen": chosen, "tried": 1, "candidates": [asdict(candidate)]}
    told = replace(facts, summary={**facts.summary, "recipe": recipe, "warnings": ["raise <max_trees>"]})
    page = render(told)
    for words in (
        "Recipe auto",
        "1,200 + 3",
        "0.171234",
        "the first &lt;candidate&gt;",
        "raise &lt;max_trees&gt;",
    ):
        assert words in page
    assert "Recipe auto: logit link" in card(told)
    assert "Warning: raise" in card(told)


def test_the_metrics_can_be_downloaded_from_the_page_as_csv(monkeypatch):
    monkeypatch.setattr(page_module, "_drawn", lambda facts: ({name: [] for name in SECTIONS}, None))
    facts = replace(calibrated(), ids={GROUPS[0]: "=cmd|' /C calc'!A0"})
    (link,) = [link for link in Outline(render(facts)).links if link.startswith("data:text/csv")]
    text = base64.b64decode(link.partition("base64,")[2]).decode("utf-8-sig")
    table = pd.read_csv(io.StringIO(text), float_precision="round_trip")
    assert list(table) == ["split", "stage", "metric", "group", "levels", "value", "name"]
    assert len(table) == facts.metrics["level"].isna().sum()
    found = table[(table["metric"] == "mc_error") & (table["stage"] == "after") & (table["levels"] == 20)]
    assert found["value"].tolist() == [facts.table.value("after", "mc_error", 20)]
    assert set(table.loc[table["name"] == GROUPS[0], "group"]) == {"'=cmd|' /C calc'!A0"}
    assert "level" not in list(table)


def test_owner_use_licence_and_notes_are_told_as_text(monkeypatch):
    monkeypatch.setattr(page_module, "_drawn", lambda facts: ({name: [] for name in SECTIONS}, None))
    told = {"path": "r.html", "owner": "Scores <b>team</b>", "intended_use": "To *rank*, not to refuse.",
            "licence": None, "notes": "one\n<script>two</script>"}  # fmt: skip
    facts = replace(calibrated(), configuration={"report": told})
    page = render(facts)
    outline = Outline(page)
    assert "about" in outline.ids
    assert "Scores <b>team</b>" in "".join(outline.text)
    assert "Licence" not in page
    assert outline.tags["script"] == outline.tags["b"] == 0
    text = card(facts)
    assert r"Intended use: To \*rank\*, not to refuse." in text
    assert r"Notes: one \<script\>two" in text
    assert 'id="about"' not in render(calibrated())


def test_decisions_are_told_by_threshold_and_group_before_and_after():
    facts = calibrated()
    score, label, member, role = population()
    test = role == Role.test
    page = render(facts)
    for threshold, found in facts.decisions():
        rows = found.set_index(found["group"].fillna("all"))
        for name, part in (("all", test), (GROUPS[0], test & member[:, 0])):
            above = score[part] >= threshold
            want = [above.mean(), above[label[part] == 1].mean(), above[label[part] == 0].mean()]
            told = rows.loc[name, ["rate_before", "true_positive_before", "false_positive_before"]]
            assert list(told) == pytest.approx(want, abs=1e-12)
            assert f"<td>{100 * want[0]:.1f} %</td>" in page
    assert [threshold for threshold, _ in facts.decisions()] == [0.5, 0.2]
    assert page.count('id="decisions"') == 1
    assert "true positive rate" not in render(rare())


def test_what_a_window_was_learned_from_is_told():
    learned = {
        "partitions": ["ds=2026-11-01", "ds=2026-11-02", "ds=2026-11-04"], "held_out": "ds=2026-11-04",
        "missing": ["ds=2026-11-03"], "computed": {"ds=2026-11-02": "labels has changed"}, "rows": 30_000,
        "test": 9_000,
    }  # fmt: skip
    facts = audited()
    facts = replace(facts, summary={**facts.summary, "learned": learned})
    for text in (render(facts), card(facts)):
        assert "30,000 rows of 3 partition(s), ds=2026-11-01 to ds=2026-11-04" in text
        assert "all 9,000 rows of ds=2026-11-04 were held out. 1 partition(s)" in text
        assert "without rows or labels: ds=2026-11-03." in text

"""What the report and the model card say of drift."""

from __future__ import annotations

import html
import re

from outline import Outline
from report_runs import GROUPS, audited, drifted

from mcspark.report.card import card
from mcspark.report.page import render


def rows_of(page, caption):
    """Texts of the cells of the table with this caption, row by row."""
    table = next(t for t in re.findall(r"<table>.*?</table>", page, re.DOTALL) if caption in t)
    body = table.split("<tbody>")[1]
    cells = [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        for row in re.findall(r"<tr>.*?</tr>", body, re.DOTALL)
    ]
    return [[html.unescape(re.sub(r"<[^>]+>", "", cell)) for cell in row] for row in cells]


def test_drift_is_a_table_of_what_has_changed():
    page = render(drifted())
    assert "run calibrate-20261101T010203Z-11111111, calibrated" in page
    assert '<a href="#drift">' in page
    assert rows_of(page, "What has changed") == [
        ["score distribution", "–", "–", "0.0123", "0.0201", "no more than chance"],
        [f"share of {GROUPS[0]}", "50.00 %", "45.67 %", "4.33 %", "1.01 %",
         "changed"],
        ["MC error, 10 levels", "0.0100\n(0.0000 to 0.0120)", "0.0500\n(0.0400 to 0.0600)", "+0.0400", "–",
         "worse"],
        ["MC error, 20 levels", "0.0120", "0.0130\n(0.0100 to 0.0200)", "+0.0010", "–",
         "within intervals"],
        ["MC error, 50 levels", "0.0200", "0.0200", "+0.0000", "–", "no worse"],
    ]  # fmt: skip
    assert [word for word in ("changed", "worse") if f"<strong>{word}</strong>" in page] == [
        "changed",
        "worse",
    ]
    assert "the share of &lt;b&gt;x&lt;/b&gt; has changed" in page
    assert "<script" not in page


def test_drift_that_cannot_be_told_and_drift_within_the_limits():
    nothing = {"score_distance": None, "score_noise": None, "share_group": None, "mc_error": {}}
    nothing |= {f"share_{what}": None for what in ("then", "now", "change", "noise")}
    page = render(drifted(problems=(), stage="before", **nothing))
    assert [row[-1] for row in rows_of(page, "What has changed")] == ["cannot be compared"] * 2
    assert "11111111, as they came in" in page
    assert "Limits that are exceeded" not in page
    assert "Drift" not in " ".join(Outline(render(audited())).text)


def test_the_card_tells_drift_too():
    text = card(drifted())
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert sum(line.startswith("| MC error, ") for line in tables) == 3
    assert r"Limit exceeded: the share of \<b\>x\</b\> has changed" in text
    assert r"\<script\>" in text
    assert "<script>" not in text
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in tables if "| MC error, " in line} == {7}
    assert "Drift" not in card(audited())

"""The report as a person sees it: laid out, in both colour schemes, narrow, printed, and without scripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_runs import GROUPS, calibrated

MEASURE = (Path(__file__).parent / "measure.js").read_text(encoding="utf-8")
WIDTHS = (1280, 768, 390, 320)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["calibration", "drift", "nothing", "comparison", "history"])
def test_nothing_overflows_and_no_text_lies_on_another(opened, name, width, tmp_path):
    page = opened(name, width=width)
    found = page.evaluate(MEASURE)
    page.screenshot(path=tmp_path / f"{name}-{width}.png", full_page=True)
    assert found["texts"] > 50
    assert found["width"] <= width
    assert found["outside"] == []
    assert found["overlaps"] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(opened, scheme):
    page = opened(scheme=scheme)
    for details in page.locator("details > summary").all():
        details.click()
    assert page.evaluate(MEASURE)["contrast"] == {}
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 23, 26)"}[scheme]


@pytest.mark.parametrize("name", ["comparison", "history"])
def test_the_other_pages_can_be_read_in_the_dark(opened, name):
    assert opened(name, scheme="dark").evaluate(MEASURE)["contrast"] == {}


def test_the_history_leads_to_reports_without_scripts(opened):
    page = opened("history", scripts=False)
    page.locator("a[href*=reports]").first.click()
    assert page.title().startswith("Calibration report audit-")


def test_lines_of_figures_stand_out_from_the_page_in_the_dark_too(opened):
    page = opened(scheme="dark")
    strokes = page.evaluate(
        """[...new Set([...document.querySelectorAll("#curves-1 path")]
            .map(path => getComputedStyle(path).stroke))]"""
    )
    assert "rgb(26, 26, 27)" not in strokes  # the ink of the light page
    assert "rgb(138, 180, 248)" in strokes  # the first curve's colour on the dark one


def test_figures_are_images_with_a_name_and_words(opened):
    page = opened()
    figures = page.get_by_role("img")
    assert figures.count() == len(page.query_selector_all("svg")) == 13
    for title in ("Multicalibration error by number of levels", "Reliability: all rows", "Training, stage 2"):
        assert page.get_by_role("img", name=title).count() == 1
    names = figures.evaluate_all("all => all.map(e => e.getAttribute('aria-labelledby').split(' ')[1])")
    words = [page.locator(f"#{name}").text_content() for name in names]
    assert all(len(text) > 60 for text in words)


def test_bad_names_are_words(opened):
    page = opened()
    for name in GROUPS:
        assert page.get_by_role("rowheader", name=" ".join(name.split())).count() >= 1
    assert page.locator("script").count() == 0


def test_nothing_is_fetched(opened):
    opened()
    assert {url.split(":")[0] for url in opened.requests} <= {"file", "data"}
    assert sum(url.startswith("file") for url in opened.requests) == 1


def names_from_top(page):
    rows = page.locator(".sorted tbody tr")
    places = [(rows.nth(i).bounding_box()["y"], i) for i in range(rows.count())]
    return [rows.nth(i).locator("th").inner_text() for _, i in sorted(places)]


def test_the_table_sorts_without_scripts_by_keyboard(opened):
    page = opened(scripts=False)
    first = names_from_top(page)
    assert first[0] == calibrated(rounds=2).table.worst_first()[0]
    choice = page.get_by_role("radio", name="rows")
    page.get_by_role("radio", name="MC error before").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert choice.is_checked()
    rows = calibrated(rounds=2).groups().set_index("group")["rows"]
    names = [n.removesuffix(" *") for n in names_from_top(page)]
    assert sorted(names) == sorted(n.removesuffix(" *") for n in first)
    shown = {" ".join(name.split()): int(n) for name, n in rows.items()}
    counts = [shown[name] for name in names]
    assert counts == sorted(counts, reverse=True)


def test_columns_stand_under_their_heads(opened):
    page = opened()
    heads = page.locator(".sorted thead th")
    cells = page.locator(".sorted tbody tr").nth(2).locator("th, td")
    assert heads.count() == cells.count() == 10
    for i in range(10):
        a, b = heads.nth(i).bounding_box(), cells.nth(i).bounding_box()
        assert a["x"] == pytest.approx(b["x"], abs=1)
        assert a["width"] == pytest.approx(b["width"], abs=1)


def test_the_first_tab_stop_leads_past_the_head(opened):
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the numbers"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#rows"


def test_print_shows_everything_on_white(opened, tmp_path):
    page = opened(scheme="dark")
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    assert page.locator("pre").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(MEASURE)["contrast"] == {}
    pdf = page.pdf(path=tmp_path / "report.pdf")
    assert pdf.startswith(b"%PDF")

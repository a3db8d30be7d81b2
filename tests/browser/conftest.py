"""A real headless Chromium, and reports to open in it; skipped where there is no browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from history_runs import write_history
from playwright.sync_api import Browser, Error, sync_playwright
from report_runs import audited, calibrated, drifted

from mcspark.cli.history import history_of, write_site
from mcspark.ml.training.tuning import Choice, ResultRow
from mcspark.pipelines.comparison_page import LABELS, figure, html
from mcspark.report.page import render

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    with sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=found, chromium_sandbox=False)
        except Error as error:
            pytest.skip(f"no browser: install chromium ({str(error).splitlines()[0]})")
        yield started
        started.close()


@pytest.fixture(scope="session")
def reports(tmp_path_factory) -> dict[str, Path]:
    """Pages on disk: a calibration of two stages, nothing to judge, drift, a past, a comparison."""
    folder = tmp_path_factory.mktemp("reports")
    found = {}
    for name, facts in (
        ("calibration", calibrated(rounds=2)),
        ("nothing", audited(nothing=True)),
        ("drift", drifted()),
    ):
        found[name] = folder / f"{name}.html"
        found[name].write_text(render(facts), encoding="utf-8")
    found["history"] = write_site(history_of([str(write_history(folder / "past"))], folder), folder)
    found["comparison"] = folder / "comparison.html"
    found["comparison"].write_text(comparison(), encoding="utf-8")
    return found


def comparison() -> str:
    """The page of a comparison of all methods on two tasks; the numbers are made up."""
    rows = [
        ResultRow(task, method, m, fold, metric, value * (1 + fold / 10))
        for task in ("income", "travel")
        for place, method in enumerate(LABELS)
        for m in (10, 20, 50)
        for fold in (0, 1)
        for metric, value in (("mc_error", 0.02 + place / 1e3), ("level_sets", m), ("worst_group_smece", 0.1))
    ]
    choices = {"income": [Choice("trees", None, (("learning_rate", 0.1),), 0.04)]}
    return html(rows, choices, "lightgbm", figure(rows))


@pytest.fixture
def opened(browser, reports):
    """Opens a report, as wide and in the colours that a test wants; scripts are off unless it says so."""
    contexts = []

    def open_report(name="calibration", *, width=1280, scheme="light", scripts=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=scripts,
            reduced_motion="reduce",  # a page that still scrolls has no places to measure
            offline=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.goto(reports[name].as_uri())
        return page

    requests: list[str] = []
    open_report.requests = requests
    yield open_report
    for context in contexts:
        context.close()

"""Links between the pages that a person reads; `sphinx-build -W` checks those inside `docs` again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcspark.core.metrics.score_metrics import SCORE_METRICS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "conf").rglob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_finds_it(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_the_read_me_names_every_page():
    linked = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = [p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md")]
    ours = [p for p in pages if not p.startswith("docs/develop/") and p != "docs/index.md"]
    assert [page for page in ours if f"]({page})" not in linked] == []


def test_the_page_of_metrics_defines_every_metric_of_the_score():
    text = (ROOT / "docs/use/metrics.md").read_text(encoding="utf-8")
    assert [metric.key for metric in SCORE_METRICS if f"`{metric.key}`" not in text] == []

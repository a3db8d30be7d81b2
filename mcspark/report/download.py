"""The metrics table inside the page, as a file to download: CSV, which every spreadsheet opens."""

from __future__ import annotations

import base64

from mcspark.report.facts import RunFacts

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


def metrics_csv(facts: RunFacts) -> str:
    """All metrics but those by level, one row each; groups by their ids, and by their names if they have any.

    A name that a spreadsheet would run as a formula begins with an apostrophe.
    """
    table = facts.metrics[facts.metrics["level"].isna()].drop(columns="level")
    names = [str(name) if isinstance(name, str) else "" for name in table["group"].tolist()]
    table = table.assign(group=[_harmless(facts.ids.get(name, name)) for name in names])
    if facts.ids:
        table = table.assign(name=[_harmless(name) for name in names])
    table = table.assign(levels=table["levels"].astype("Int64"))
    return str(table.to_csv(index=False, lineterminator="\r\n"))


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


def metrics_address(facts: RunFacts) -> str:
    """The table as an address that needs no server."""
    # The mark at the start tells spreadsheets that it is UTF-8.
    content = metrics_csv(facts).encode("utf-8-sig")
    return f"data:text/csv;charset=utf-8;base64,{base64.b64encode(content).decode()}"

"""The report of a run: one self-contained HTML page, the same bytes for the same input."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import structlog
from jinja2 import Environment, PackageLoader, StrictUndefined

from mcspark.report.definitions import DEFINITIONS
from mcspark.report.download import metrics_address
from mcspark.report.drift import DriftRow, drift_rows
from mcspark.report.facts import RunFacts, count, number, share

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~$])")

log = structlog.get_logger(__name__)

MAX_ROWS = 500
"""Groups in the table; the metrics table has them all."""

_ORDERS = (
    ("error_before", "{error} before", False),
    ("error_after", "{error} after", False),
    ("smece_after", "smECE after", False),
    ("rows", "rows", False),
    ("group", "name", True),
)


def render(facts: RunFacts) -> str:
    """The page."""
    groups = facts.groups()
    drawn, trouble = _drawn(facts)
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            facts=facts,
            summary=facts.summary,
            pictures=drawn,
            trouble=trouble,
            drift=drift_of(facts),
            groups=_with_places(groups.head(MAX_ROWS)),
            orders=[(n, words.format(error=facts.error_name)) for n, words, _ in _ORDERS if n in groups],
            n_groups=len(groups),
            max_rows=MAX_ROWS,
            definitions=DEFINITIONS,
            csv=metrics_address(facts),
        )
    )


def drift_of(facts: RunFacts) -> Sequence[DriftRow]:
    """What has changed since an earlier run; nothing where none was compared with."""
    found = facts.summary.get("drift")
    return drift_rows(found) if found else ()


def _drawn(facts: RunFacts) -> tuple[Mapping[str, Sequence[Any]], str | None]:
    """The pictures, or none and why: what was calibrated and published is not lost for want of a picture."""
    # Drawing is slow to import, and runs without a report do not need it.
    from mcspark.report.pictures import SECTIONS, pictures  # noqa: PLC0415

    try:
        return pictures(facts), None
    except Exception as error:
        log.exception("the pictures of the report could not be drawn")
        return {name: [] for name in SECTIONS}, str(error)


def environment(*, markdown: bool = False) -> Environment:
    """Templates of this package: nothing may be undefined, all is escaped, for HTML or Markdown."""
    found = Environment(
        loader=PackageLoader("mcspark.report"),
        autoescape=not markdown,
        finalize=_plain_text if markdown else None,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(number=number, count=count, share=share, plain_json=_plain_json)
    return found


def _plain_text(value: Any) -> Any:
    """Text as Markdown shows it: nothing in a name is markup, and a name stays on its line."""
    return _MARKUP.sub(r"\\\1", " ".join(value.split())) if isinstance(value, str) else value


def _plain_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _with_places(groups: pd.DataFrame) -> Sequence[dict[str, Any]]:
    """The rows of the table, each with its place under every order: style sheets sort by it, no script."""
    places = {
        name: groups[name].rank(method="first", ascending=ascending).fillna(len(groups)).astype(int)
        for name, _, ascending in _ORDERS
        if name in groups.columns
    }
    return [
        {
            **dict(zip(groups.columns, row, strict=True)),
            "places": {n: int(p.iloc[i]) for n, p in places.items()},
        }
        for i, row in enumerate(groups.itertuples(index=False))
    ]

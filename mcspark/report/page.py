"""The report of a run: one self-contained HTML page, the same bytes for the same input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from mcspark.core.calibration_error import GroupSummary

GroupPair = tuple[GroupSummary, GroupSummary | None]
"""A group before and, after a calibration, after."""


def reference_grid(by_level: Mapping[str, Any]) -> str:
    """The grid that the verdict speaks of: 20 levels where it was measured, else the second coarsest."""
    grids = sorted(by_level, key=int)
    return "20" if "20" in grids else grids[min(1, len(grids) - 1)]


def render(summary: Mapping[str, Any], groups: Sequence[GroupPair], configuration: Mapping[str, Any]) -> str:
    """The page.

    Parameters
    ----------
    summary : mapping
        The run's summary line; ``metrics`` with ``before`` and, after a calibration, ``after``.
    groups : sequence of (GroupSummary, GroupSummary or None)
    configuration : mapping
        Resolved and redacted.
    """
    environment = Environment(
        loader=PackageLoader("mcspark.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = _number
    ordered = sorted(groups, key=lambda pair: -(pair[1] or pair[0]).mc)
    grid = reference_grid(summary["metrics"]["before"]["by_level"])
    return environment.get_template("report.html.j2").render(
        summary=summary, groups=ordered, configuration=configuration, grid=grid
    )


def _number(value: float | None, digits: int = 4) -> str:
    return "–" if value is None else f"{value:.{digits}f}"

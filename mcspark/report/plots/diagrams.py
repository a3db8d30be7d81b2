"""Reliability diagrams: mean label against mean score, level by level."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mcspark.report.metrics_table import AFTER, BEFORE, MetricsTable
from mcspark.report.plots.style import (
    AFTER_COLOUR,
    BEFORE_COLOUR,
    GROUND,
    MUTED,
    new_figure,
    short,
    styled,
    unit_axis,
)

NORMAL_90 = 1.6449
"""Half width of a 90 % interval, in standard errors."""
NARROW = 0.25
"""Where scores and labels span less than this, the axes show no more than that."""
FEW_ROWS = 10
"""Levels with fewer rows are drawn hollow."""

_LOOKS = {BEFORE: (BEFORE_COLOUR, "s"), AFTER: (AFTER_COLOUR, "o")}


def reliability(metrics: pd.DataFrame | MetricsTable, group: str | None = None) -> Figure:
    """Mean label against mean score in each level of one group, before and after, with 90 % intervals.

    Parameters
    ----------
    metrics : DataFrame or MetricsTable
        A metrics table, see :class:`mcspark.report.metrics_table.MetricsTable`.
    group : str, optional
        All rows if absent.

    Raises
    ------
    ValueError
        If there is no such group.

    Notes
    -----
    Intervals are the mean label ± 1.64 standard errors, cut at 0 and 1. The bars below count the rows of
    each level; levels with fewer than 10 rows are hollow. The axes span [0, 1], or less where all scores
    and labels lie close together.
    """
    table = MetricsTable.of(metrics)
    if group is not None and group not in table.by_group(BEFORE, "share").index:
        raise ValueError(f"no group {group!r} in this metrics table")
    with styled():
        figure = new_figure(4.6)
        axes, counts = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=":", label="perfect calibration")
        width = 1 / table.grid
        for place, stage in enumerate(table.stages):
            colour, marker = _LOOKS[stage]
            facts = table.by_level(stage, group)
            _points(axes, facts, colour, marker, stage)
            left = facts.index.to_numpy() * width + width * place / len(table.stages)
            counts.bar(left, facts["rows"], width / len(table.stages) * 0.9, align="edge", color=colour)
        axes.set_title(f"Reliability: {short(group)}")
        ends = _ends([table.by_level(stage, group) for stage in table.stages], width)
        axes.set_ylim(*ends)
        axes.set_ylabel("mean label (0 to 1)")
        axes.legend(loc="upper left")
        counts.set_ylabel("rows")
        counts.yaxis.set_major_locator(MaxNLocator(2, integer=True))
        unit_axis(counts, f"mean score in each of {table.grid} levels (0 to 1)")
        counts.set_xlim(*ends)
        return figure


def _ends(stages: list[pd.DataFrame], width: float) -> tuple[float, float]:
    """Ends of both axes: of the unit interval, or of what holds every level and mean label."""
    facts = pd.concat(stages)
    if facts.empty:
        return 0.0, 1.0
    low = min(facts.index.min() * width, facts["mean_label"].min())
    high = max((facts.index.max() + 1) * width, facts["mean_label"].max())
    return (low, high) if high - low < NARROW else (0.0, 1.0)


def _points(axes: Axes, facts: pd.DataFrame, colour: str, marker: str, name: str) -> None:
    label, spread = facts["mean_label"], NORMAL_90 * facts["label_error"].fillna(0)
    ends = np.stack([label - (label - spread).clip(lower=0), (label + spread).clip(upper=1) - label])
    axes.errorbar(
        facts["mean_score"], label, yerr=ends, color=colour, marker=marker, markersize=4,
        linewidth=1.2, elinewidth=1, label=name, markerfacecolor=colour,
    )  # fmt: skip
    few = facts[facts["rows"] < FEW_ROWS]
    axes.plot(
        few["mean_score"], few["mean_label"], color=colour, marker=marker, markersize=4, linestyle="none",
        markerfacecolor=GROUND, zorder=3,
    )  # fmt: skip

"""Multicalibration error against the grid: the paper's figure 2, with the noise floor that it lacks."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from mcspark.report.metrics_table import AFTER, BEFORE, MetricsTable
from mcspark.report.plots.style import AFTER_COLOUR, BEFORE_COLOUR, FLOOR_COLOUR, new_figure, styled


def error_by_grid(metrics: pd.DataFrame | MetricsTable) -> Figure:
    """MC error of the score before and after, beside what chance alone would show.

    Parameters
    ----------
    metrics : DataFrame or MetricsTable
        A metrics table, see :class:`mcspark.report.metrics_table.MetricsTable`.

    Notes
    -----
    The grey band spans the 5 % and 95 % quantiles of the error of a perfectly calibrated score. Bars span
    the 90 % interval of the population's error where it was asked for; chance pushes the error itself up,
    so its interval may lie below it. Grids that cannot tell the scores apart are in brackets.
    """
    table = MetricsTable.of(metrics)
    with styled():
        figure = new_figure(3.4)
        axes = figure.subplots()
        grids = [f"({m})" if m in table.lead.blind_grids else str(m) for m in table.grids]
        place = range(len(grids))
        floor = [table.by_grid(table.last, f"noise_floor{end}").reindex(table.grids) for end in _ENDS]
        axes.fill_between(
            place, floor[1], floor[2], color=FLOOR_COLOUR, alpha=0.2, linewidth=0, label="chance, 5–95 %"
        )
        axes.plot(place, floor[0], color=FLOOR_COLOUR, linestyle="--", label="noise floor (mean of chance)")
        for stage, colour, marker in ((BEFORE, BEFORE_COLOUR, "s"), (AFTER, AFTER_COLOUR, "o")):
            if stage in table.stages:
                error = table.by_grid(stage, "mc_error").reindex(table.grids)
                axes.plot(place, error, color=colour, marker=marker, markersize=5, label=_NAMES[stage])
        low, high = (table.by_grid(table.last, f"mc_error{end}").reindex(table.grids) for end in _ENDS[1:])
        if high.notna().any():
            colour = AFTER_COLOUR if table.last == AFTER else BEFORE_COLOUR
            axes.vlines(
                place, low, high, color=colour, alpha=0.45, linewidth=5, label="90 % interval, population"
            )
        axes.set_title("Multicalibration error by number of levels")
        axes.set_xticks(place, grids)
        blind = "; in brackets: blind" if table.lead.blind else ""
        axes.set_xlabel(f"levels of the grid (count{blind})")
        axes.set_ylabel("MC error (score units, 0 to 1)")
        axes.set_ylim(bottom=0)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
        return figure


_ENDS = ("", "_low", "_high")
_NAMES = {BEFORE: "before", AFTER: "after"}

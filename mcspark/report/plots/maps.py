"""Heat maps: groups down, score across, one colour scale."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mcspark.core.cells.levels import FloatArray
from mcspark.report.metrics_table import MetricsTable
from mcspark.report.plots.style import BLANK, DIVERGING, new_figure, short, styled

MAX_GROUPS = 60
"""A map shows so many groups at most, the worst ones."""
FEW_ROWS = 25
"""Group and level with fewer rows are left grey: their gap is mostly chance."""


def gap_scale(metrics: pd.DataFrame | MetricsTable) -> float:
    """Largest gap of the colour scale that the maps of a run share: what 99 % of the gaps do not pass."""
    table = MetricsTable.of(metrics)
    gaps = np.concatenate([np.abs(_shown(table, stage)).ravel() for stage in table.stages])
    gaps = gaps[np.isfinite(gaps)]
    largest = float(np.quantile(gaps, 0.99)) if len(gaps) else 0.0
    return max(math.ceil(largest * 20) / 20, 0.05)


def gap_map(
    metrics: pd.DataFrame | MetricsTable, stage: str = "before", scale: float | None = None
) -> Figure:
    """Mean score less mean label by group and level.

    Parameters
    ----------
    metrics : DataFrame or MetricsTable
        A metrics table, see :class:`mcspark.report.metrics_table.MetricsTable`.
    stage : {'before', 'after'}
    scale : float, optional
        Gap at the ends of the colour scale; that of :func:`gap_scale` if absent, so that the maps of
        ``before`` and ``after`` compare.
    """
    table = MetricsTable.of(metrics)
    scale = gap_scale(metrics) if scale is None else scale
    names = table.worst_first()[:MAX_GROUPS]
    return heat_map(
        _shown(table, stage),
        names,
        title=f"Score less label, {stage}",
        across="score (0 to 1)",
        unit=f"mean score − mean label\ngrey: fewer than {FEW_ROWS} rows",
        scale=scale,
    )


def heat_map(
    values: FloatArray, names: Sequence[str], *, title: str, across: str, unit: str, scale: float
) -> Figure:
    """Values of shape (groups, columns) over a score in [0, 1], orange below zero and purple above."""
    with styled():
        height = 0.17 * len(names) + 1.5
        figure = new_figure(height)
        axes, bar = figure.subplots(2, 1, height_ratios=(max(height - 1.2, 0.2), 0.12))
        axes.imshow(
            values, cmap=DIVERGING, vmin=-scale, vmax=scale, aspect="auto", interpolation="none",
            extent=(0, 1, len(names), 0),
        )  # fmt: skip
        axes.set_facecolor(BLANK)
        axes.grid(visible=False)
        axes.set_title(title)
        axes.set_yticks(np.arange(len(names)) + 0.5, [short(n, 20) for n in names], fontsize=8.5)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(across)
        bar.imshow(
            np.linspace(-scale, scale, 101)[None], cmap=DIVERGING, aspect="auto", interpolation="none",
            extent=(-scale, scale, 0, 1),
        )  # fmt: skip
        bar.set_yticks([])
        bar.grid(visible=False)
        bar.set_xticks([-scale, 0, scale], [f"−{scale:.2g}", "0", f"+{scale:.2g}"])
        bar.set_xlabel(unit)
        return figure


def _shown(table: MetricsTable, stage: str) -> FloatArray:
    names = table.worst_first()[:MAX_GROUPS]
    gaps, rows = table.gaps(stage), table.level_rows(stage)
    return gaps.where(rows >= FEW_ROWS).reindex(names).to_numpy(dtype=np.float64)

"""The corrections of two models on one figure."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mcspark.core.cells.levels import FloatArray
from mcspark.report.difference import SCORES
from mcspark.report.plots.style import INK, MUTED, SERIES, new_figure, short, styled, unit_axis

MAX_WORDS = 60


def corrections_of_two(pairs: Mapping[str, tuple[FloatArray, ...]]) -> Figure:
    """By group, the change of a score in A (dashed) and in B (solid), over the score."""
    with styled():
        figure = new_figure(4.4)
        axes = figure.subplots()
        axes.axhline(0, color=MUTED, linewidth=0.8)
        for (_, (a, b)), colour in zip(pairs.items(), (INK, *SERIES), strict=False):
            axes.plot(SCORES, a, color=colour, linestyle="--", linewidth=1.2)
            axes.plot(SCORES, b, color=colour, linewidth=1.8)
        axes.set_title("What a score gets in A (dashed) and in B")
        axes.set_ylabel("calibrated score less score")
        unit_axis(axes, "score that comes in (0 to 1)")
        # Explicit handles: a name that begins with an underscore would be left out.
        lines = [Line2D([], [], color=colour) for _, colour in zip(pairs, (INK, *SERIES), strict=False)]
        figure.legend(lines, [short(name, MAX_WORDS) for name in pairs], loc="outside lower center")
    return figure

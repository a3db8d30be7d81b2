"""From a score to its calibrated score: one bar a step."""

from __future__ import annotations

from matplotlib.figure import Figure

from mcspark.core.model.explanation import ExplainedStage
from mcspark.report.plots.corrections import UNITS
from mcspark.report.plots.style import AFTER_COLOUR, BEFORE_COLOUR, INK, MUTED, new_figure, short, styled

MAX_WORDS = 60
MOST = 12
"""Steps with a bar of their own; the smaller ones share one."""


def largest_steps(stage: ExplainedStage, most: int = MOST) -> list[tuple[str, float]]:
    """Names and values of the steps in their order; the smallest are put together where there are many."""
    steps = [(step.name, step.value) for step in stage.steps if step.kind != "rounding"]
    if len(steps) <= most:
        return steps
    kept = sorted(range(len(steps)), key=lambda i: (-abs(steps[i][1]), i))[: most - 1]
    rest = [value for i, (_, value) in enumerate(steps) if i not in kept]
    return [*(steps[i] for i in sorted(kept)), (f"{len(rest)} smaller steps", sum(rest))]


def explanation_steps(stage: ExplainedStage, number: int = 1) -> Figure:
    """The steps of one stage from where its score starts to where it ends.

    Parameters
    ----------
    stage : ExplainedStage
    number : int
        Of the stage, from 1.
    """
    steps = largest_steps(stage)
    names = ["comes in", *(short(name, MAX_WORDS) for name, _ in steps), "goes out"]
    with styled():
        figure = new_figure(1.3 + 0.27 * len(names), 3.2 + 0.075 * max(map(len, names)))
        axes = figure.subplots()
        at = stage.start
        places = [at]
        for i, (_, value) in enumerate(steps, start=1):
            colour = AFTER_COLOUR if value >= 0 else BEFORE_COLOUR
            axes.barh(i, value, left=at, height=0.6, color=colour)
            axes.plot([at, at], [i - 1, i], color=MUTED, linewidth=0.8)
            at += value
            places.append(at)
            axes.annotate(
                f"{value:+.4f}", (max(at, at - value), i), xytext=(4, 0), textcoords="offset points",
                va="center", fontsize=8,
            )  # fmt: skip
        last = len(names) - 1
        axes.plot([at, at], [last - 1, last], color=MUTED, linewidth=0.8)
        for place, value in ((0, stage.start), (last, stage.end)):
            axes.plot([value], [place], marker="D", color=INK, markersize=5, linestyle="none")
            axes.annotate(
                f"{value:.4f}", (value, place), xytext=(7, 0), textcoords="offset points", va="center",
                fontsize=8,
            )  # fmt: skip
        low, high = min(places), max(places)
        room = max(high - low, 1e-3)
        axes.set_xlim(low - 0.08 * room, high + 0.25 * room)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(UNITS[stage.link])
        axes.set_title(f"{stage.before:.4f} → {stage.after:.4f}, stage {number}")
        return figure

"""The loss as trees were added, and where the boosting stopped."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from mcspark.report.plots.style import AFTER_COLOUR, INK, MUTED, new_figure, styled


def training(curve: pd.DataFrame, stage: int = 0, loss: str = "squared loss") -> Figure:
    """Loss of the fitting and of the early-stopping rows by number of trees.

    Parameters
    ----------
    curve : DataFrame
        ``stage``, ``trees``, ``fit``, ``early_stopping``: the points of
        :func:`mcspark.core.training.training_curve.training_curve`.
    stage : int
    loss : str
        What the trees were grown on.
    """
    part = curve[curve["stage"] == stage]
    if part.empty:
        raise ValueError(f"no stage {stage} in this training curve")
    with styled():
        figure = new_figure(3.4)
        axes = figure.subplots()
        axes.plot(
            part["trees"], part["fit"], color=MUTED, linestyle="--", label="rows that the trees learned from"
        )
        held_out = part.dropna(subset=["early_stopping"])
        if len(held_out):
            axes.plot(
                held_out["trees"],
                held_out["early_stopping"],
                color=AFTER_COLOUR,
                label="held-out rows that stop it",
            )
            last = held_out.iloc[-1]
            axes.plot(
                [last["trees"]], [last["early_stopping"]], color=INK, marker="o", linestyle="none",
                label=f"stopped at {int(last['trees'])} trees",
            )  # fmt: skip
        axes.set_title(f"Training, stage {stage + 1}")
        axes.set_xlabel("trees (count)")
        axes.set_ylabel(f"{loss} (mean)")
        axes.set_xlim(left=0)
        axes.legend()
        return figure

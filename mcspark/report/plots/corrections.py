"""What a calibrator made of trees adds to each group's score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mcspark.core.cells.levels import FloatArray
from mcspark.report.plots.maps import heat_map
from mcspark.report.plots.style import DASHES, INK, MUTED, SERIES, new_figure, short, styled, unit_axis

PLACES = 200
"""Scores at which the curves are compared."""
UNITS = {"identity": "score units", "logit": "log-odds"}


def at_scores(curves: pd.DataFrame, stage: int = 0, places: int = PLACES) -> pd.DataFrame:
    """The curves at equally spaced scores: one row a group (None: every row), one column a score."""
    scores = (np.arange(places) + 0.5) / places
    rows = {}
    for group, steps in curves[curves["stage"] == stage].groupby("group", dropna=False, sort=False):
        place = np.searchsorted(steps["upper"].to_numpy()[:-1], scores, side="left")
        rows[None if pd.isna(group) else group] = steps["correction"].to_numpy()[place]
    return pd.DataFrame.from_dict(rows, orient="index", columns=scores)


def largest(curves: pd.DataFrame, stage: int = 0, count: int = len(SERIES)) -> list[str]:
    """Groups whose curve is farthest from zero on average over the score range, farthest first."""
    table = at_scores(curves, stage)
    table = table[table.index.notna()]
    size = table.abs().mean(axis=1).sort_values(ascending=False, kind="stable")
    return [str(name) for name, value in size.items() if value > 0][:count]


def correction_curves(curves: pd.DataFrame, stage: int = 0, groups: Sequence[str] | None = None) -> Figure:
    """The curve that every row gets, and those that members of some groups get on top.

    Parameters
    ----------
    curves : DataFrame
        ``MulticalibratorModel.curves()``.
    stage : int
    groups : sequence of str, optional
        At most six; those with the largest corrections if absent.
    """
    names = list(groups) if groups is not None else largest(curves, stage)
    if len(names) > len(SERIES):
        raise ValueError(f"{len(names)} groups in one figure; at most {len(SERIES)} can be told apart")
    link = _link(curves, stage)
    table = at_scores(curves, stage)
    with styled():
        figure = new_figure(4.4)
        axes = figure.subplots()
        axes.axhline(0, color=MUTED, linewidth=0.8)
        scores = table.columns.to_numpy(dtype=np.float64)
        axes.plot(
            scores, table[table.index.isna()].to_numpy()[0], color=INK, linewidth=2.2, label="every row"
        )
        for name, colour, dashes in zip(names, SERIES, DASHES, strict=False):
            axes.plot(
                scores, table.loc[name], color=colour, linestyle=dashes, linewidth=1.5, label=short(name)
            )
        axes.set_title(f"Correction by score, stage {stage + 1}")
        axes.set_ylabel(f"correction ({UNITS[link]})")
        unit_axis(axes, "score that comes in (0 to 1)")
        # Explicit handles: a name that begins with an underscore would be left out.
        lines = axes.get_lines()[1:]
        axes.legend(
            lines, ["every row", *(short(n) for n in names)], loc="upper center",
            bbox_to_anchor=(0.5, -0.16), ncols=2,
        )  # fmt: skip
        return figure


def correction_map(curves: pd.DataFrame, groups: Sequence[str], stage: int = 0, places: int = 40) -> Figure:
    """The curves of many groups as a heat map, in the order given.

    Parameters
    ----------
    curves : DataFrame
        ``MulticalibratorModel.curves()``.
    groups : sequence of str
    stage, places : int
        Which stage, and at how many scores.
    """
    table = at_scores(curves, stage, places)
    values: FloatArray = table.loc[list(groups)].to_numpy(dtype=np.float64)
    peak = float(np.quantile(np.abs(values), 0.99)) if values.size else 0.0
    link = _link(curves, stage)
    return heat_map(
        values,
        groups,
        title=f"Correction of each group, stage {stage + 1}",
        across="score that comes in (0 to 1)",
        unit=f"added to members' scores\n({UNITS[link]})",
        scale=max(peak, 1e-6),
    )


def _link(curves: pd.DataFrame, stage: int) -> str:
    links = curves.loc[curves["stage"] == stage, "link"]
    if links.empty:
        raise ValueError(f"no stage {stage} in these curves")
    return str(links.iloc[0])

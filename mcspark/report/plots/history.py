"""What was measured, run after run, with the limits that the runs before set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcspark.core.cells.levels import FloatArray
from mcspark.report.plots.style import (
    AFTER_COLOUR,
    BEFORE_COLOUR,
    DASHES,
    FLOOR_COLOUR,
    INK,
    SERIES,
    new_figure,
    short,
    styled,
)

Values = Sequence[float | None]
Limits = Sequence[tuple[float | None, float | None] | None]
MAX_LABELS = 4
MAX_LABEL = 12


def error_by_run(
    labels: Sequence[str],
    error: Values,
    floor: Values,
    ends: tuple[Values, Values],
    before: Values,
    limits: Limits,
    out: Sequence[int],
    name: str = "error",
) -> Figure:
    """The error of each run beside its noise floor and the interval of the population's error.

    Parameters
    ----------
    labels : sequence of str
        Of the runs.
    error, floor, before : sequence of float or None
        Of a run's last score, what chance alone shows of it, and of a calibration the error before.
    ends : pair of sequences
        Lower and upper ends of the intervals.
    limits : sequence of (float or None, float or None) or None
        That the runs before each run set.
    out : sequence of int
        Places of the values out of the ordinary.
    name : str
        Of the error.
    """
    with styled():
        figure, axes, place = _by_run(labels, f"{name} by run", f"{name} (score units)")
        low, high = (_array(values) for values in ends)
        if np.isfinite(high).any():
            axes.vlines(
                place,
                low,
                high,
                color=AFTER_COLOUR,
                alpha=0.35,
                linewidth=3,
                label="90 % interval, population",
            )
        if any(value is not None for value in before):
            axes.plot(
                place, _array(before), color=BEFORE_COLOUR, linewidth=1.2, linestyle="-.", label="before"
            )
        axes.plot(place, _array(floor), color=FLOOR_COLOUR, linestyle="--", label="noise floor")
        _limits(axes, place, limits)
        _line(axes, place, _array(error), name)
        _marked(axes, place, _array(error), out)
        axes.set_ylim(bottom=0)
        _legend(axes)
        return figure


def measure_by_run(
    labels: Sequence[str],
    values: Values,
    limits: Limits,
    out: Sequence[int],
    name: str,
) -> Figure:
    """One number of each run, with the limits that the runs before it set."""
    with styled():
        figure, axes, place = _by_run(labels, f"{name[:1].upper()}{name[1:]} by run", name)
        _limits(axes, place, limits)
        _line(axes, place, _array(values), name)
        _marked(axes, place, _array(values), out)
        _legend(axes)
        return figure


def shares_by_run(labels: Sequence[str], shares: Mapping[str, Values]) -> Figure:
    """Shares of groups among the held-out rows of each run."""
    with styled():
        figure, axes, place = _by_run(labels, "Shares of the groups that moved most", "share of the rows (%)")
        for i, (group, values) in enumerate(shares.items()):
            axes.plot(
                place, 100 * _array(values), color=SERIES[i % len(SERIES)], linestyle=DASHES[i % len(DASHES)],
                marker="." if len(place) < 60 else None, label=short(group),
            )  # fmt: skip
        axes.set_ylim(bottom=0)
        _legend(axes)
        return figure


def _apart(labels: Sequence[str]) -> tuple[str, list[str]]:
    """The first word of the labels, such as the day, where all share it; and what is behind it."""
    split = [label.partition(" ") for label in labels]
    if len(labels) > 1 and len({word for word, _, _ in split}) == 1 and all(end for _, _, end in split):
        return split[0][0], [end for _, _, end in split]
    return "", list(labels)


def _by_run(labels: Sequence[str], title: str, unit: str) -> tuple[Figure, Axes, FloatArray]:
    figure = new_figure(3.2)
    axes = figure.subplots()
    axes.set_title(title)
    axes.set_ylabel(short(unit, 40))
    places = np.unique(np.linspace(0, len(labels) - 1, min(MAX_LABELS, len(labels))).round().astype(int))
    common, ends = _apart(labels)
    axes.set_xticks(places, [short(ends[i], MAX_LABEL) for i in places])
    axes.set_xlim(-0.6, max(len(labels) - 0.4, 0.6))
    axes.set_xlabel(f"run, {short(common)}" if common else "run")
    return figure, axes, np.arange(len(labels), dtype=float)


def _limits(axes: Axes, place: FloatArray, limits: Limits) -> None:
    label: str | None = "limit"
    for side in (0, 1):
        ends = _array([None if limit is None else limit[side] for limit in limits])
        if np.isfinite(ends).any():
            axes.step(place, ends, where="mid", color=FLOOR_COLOUR, linewidth=1, linestyle=":", label=label)
            label = None  # one line of the legend for both


def _line(axes: Axes, place: FloatArray, values: FloatArray, name: str) -> None:
    known = np.isfinite(values)
    marker = "o" if known.sum() < 60 else None
    axes.plot(place[known], values[known], color=AFTER_COLOUR, marker=marker, markersize=4, label=short(name))


def _marked(axes: Axes, place: FloatArray, values: FloatArray, out: Sequence[int]) -> None:
    if out:
        where = list(out)
        axes.plot(
            place[where], values[where], color=INK, marker="o", markersize=10, markerfacecolor="none",
            linestyle="none", label="out of the ordinary",
        )  # fmt: skip


def _legend(axes: Axes) -> None:
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)


def _array(values: Values) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values], dtype=float)

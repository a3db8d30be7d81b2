"""How every figure looks: a palette that colour-blind people can tell apart, and no state of pyplot."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, MUTED, RULE, GROUND, BLANK = "#1a1a1b", "#5c5c5d", "#d8d8d9", "#fffffe", "#e6e6e7"
BEFORE_COLOUR, AFTER_COLOUR, FLOOR_COLOUR = "#b45309", "#0b57d0", "#5c5c5e"
SERIES = ("#0b57d1", "#b4530a", "#00695d", "#8b2fa1", "#8a6d01", "#444446")
"""Colours of curves; each also has its own dashes, and no two constants here are equal."""
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
DIVERGING = "PuOr"
WIDTH = 4.7
"""Inches; figures are this narrow so that their text can be read on a telephone."""

MAX_NAME = 26

_SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.titlesize": 11.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.grid": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "text.parse_math": False,
    "svg.fonttype": "none",
    "image.composite_image": False,
}


@contextmanager
def styled(salt: str = "mcspark") -> Iterator[None]:
    """The settings of all figures, whatever the user's own are; ``salt`` makes the ids of an SVG its own."""
    with warnings.catch_warnings(), mpl.rc_context():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        mpl.rcdefaults()
        mpl.rcParams.update({**_SETTINGS, "svg.hashsalt": salt})
        yield


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure that lays itself out."""
    return Figure(figsize=(width, height), layout="constrained")


def short(name: str | None, limit: int = MAX_NAME) -> str:
    """A group's name as it fits into a figure; ``all rows`` for none."""
    if name is None:
        return "all rows"
    text = "".join(c if c.isprintable() else "\ufffd" for c in name)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def unit_axis(axes: Axes, name: str) -> None:
    """The x axis of a score in [0, 1]."""
    axes.set_xlim(0, 1)
    axes.set_xlabel(name)

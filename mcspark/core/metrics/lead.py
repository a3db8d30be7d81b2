"""Which grids can tell the scores at hand apart, and which error is led with.

The MC error on a grid knows no more of a score than its level. Where nearly all scores lie in one level, as
the scores of a rare label do, it stays the same whatever calibration does: such a grid is *blind*. Where the
calibrated scores do, their rounding is all that it measures. Reports lead with a grid that sees both, and
where all are blind with two errors that need none: the MA error of the score itself, which has a noise floor
and a p-value too, and smECE.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcspark.core.cells.levels import FloatArray
from mcspark.core.cells.summed import Summed
from mcspark.core.metrics.reliability import reference_grid

BLIND_SHARE = 0.95
"""A grid is blind where one of its levels holds at least this share of the weight."""


@dataclass(frozen=True)
class FullestLevel:
    """The level of grid ``m`` that holds the largest share of the weight, of scores before or after."""

    m: int
    level: int
    share: float
    after: bool = False

    @classmethod
    def of(cls, cells: Summed, m: int, *, after: bool = False) -> FullestLevel | None:
        """Of these rows; None if they have no weight."""
        return cls.of_weight(cells.level_sums("weight", m), after=after)

    @classmethod
    def of_weight(cls, weight: FloatArray, *, after: bool = False) -> FullestLevel | None:
        """Of rows with this weight in each level, shape (m,); None if it is 0."""
        level, total = int(np.argmax(weight)), float(weight.sum())
        return cls(len(weight), level, float(weight[level]) / total, after) if total > 0 else None

    @property
    def blind(self) -> bool:
        """Whether the grid cannot tell the scores apart."""
        return self.share >= BLIND_SHARE

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest score of the level, and the lowest above it."""
        return self.level / self.m, (self.level + 1) / self.m

    def words(self) -> str:
        """``99.8 % in [0, 0.05) of 20 levels``."""
        low, high = self.ends
        close = "]" if self.level == self.m - 1 else ")"
        return f"{100 * self.share:.1f} % in [{low:.4g}, {high:.4g}{close} of {self.m} levels"


@dataclass(frozen=True)
class Lead:
    """The error that is spoken of first.

    Attributes
    ----------
    grid : int
        That tables and pictures by level show.
    blind : tuple of FullestLevel
        The blind grids: blind to the scores before, or else to those after.
    """

    grid: int
    blind: tuple[FullestLevel, ...] = ()

    @classmethod
    def among(cls, levels: Sequence[int], fullest: Iterable[FullestLevel | None]) -> Lead:
        """The reference grid if it sees, else the first of ``levels`` that does, else the finest."""
        found = sorted((f for f in fullest if f is not None and f.blind), key=lambda f: f.after, reverse=True)
        blind = {f.m: f for f in found}  # what is said of the scores before comes last, and stays
        seeing = [m for m in (reference_grid(levels), *levels) if m not in blind]
        return cls(seeing[0] if seeing else max(levels), tuple(blind[m] for m in levels if m in blind))

    @classmethod
    def of(cls, levels: Sequence[int], before: Summed, after: Summed | None = None) -> Lead:
        """For a score and, of a calibration, the calibrated one."""
        stages = [(before, False)] + ([(after, True)] if after is not None else [])
        return cls.among(levels, (FullestLevel.of(c, m, after=late) for c, late in stages for m in levels))

    @property
    def blind_grids(self) -> tuple[int, ...]:
        """Numbers of levels of the blind grids."""
        return tuple(f.m for f in self.blind)

    @property
    def levels(self) -> int | None:
        """Grid of the MC error that is led with; None for the MA error of the score itself."""
        return None if self.grid in self.blind_grids else self.grid

    @property
    def error_name(self) -> str:
        """Short name of the error that is led with."""
        return ERROR_NAMES[self.metric("mc_error")[0]]

    def metric(self, name: str) -> tuple[str, int | None]:
        """Name and grid of the metric that stands for one of the MC error: :data:`WITHOUT_GRID`."""
        return (WITHOUT_GRID[name], None) if self.levels is None else (name, self.levels)

    def words(self) -> str:
        """What is blind and what is led with, in two sentences; nothing if every grid sees."""
        if not self.blind:
            return ""
        led = (
            "the multiaccuracy error of the score itself and the smooth calibration error, which need no grid"
            if self.levels is None
            else f"the multicalibration error at {self.levels} levels"
        )
        which = ", ".join(map(str, self.blind_grids))
        parts = [
            f"{when} calibration {', '.join(found)}"
            for when, is_after in (("before", False), ("after", True))
            if (found := [f.words() for f in self.blind if f.after == is_after])
        ]
        return (
            f"The multicalibration error at {which} levels is blind to these scores, of which nearly all the "
            f"weight lies in one level: {'; '.join(parts)}. This leads with {led}."
        )

    def summary(self) -> dict[str, Any]:
        """Plain JSON values."""
        name, levels = self.metric("mc_error")
        blind = {str(f.m): {"level": list(f.ends), "share": f.share, "after": f.after} for f in self.blind}
        return {"metric": name, "levels": levels, "blind": blind}


WITHOUT_GRID = {
    "mc_error": "ma_error",
    "group_mc_error": "group_ma_error",
    "noise_floor": "ma_noise_floor",
    "noise_floor_low": "ma_noise_floor_low",
    "noise_floor_high": "ma_noise_floor_high",
    "p_value": "ma_p_value",
}
"""Metrics of the MC error on a grid, and those of the MA error of the score itself."""

ERROR_NAMES = {"mc_error": "MC error", "ma_error": "MA error"}

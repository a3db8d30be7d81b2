"""All metrics of one score on one set of rows, from its cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import FloatArray
from mcspark.core.cells.summed import Summed
from mcspark.core.metrics.calibration_error import GroupSummary, LevelErrors, group_table, level_errors
from mcspark.core.metrics.decisions import Decision, decisions
from mcspark.core.metrics.intervals import Interval, Intervals, bootstrap_intervals
from mcspark.core.metrics.lead import FullestLevel, Lead
from mcspark.core.metrics.noise import QUANTILES, NoiseFloor, noise_floor
from mcspark.core.metrics.reliability import Reliability
from mcspark.core.metrics.score_metrics import Found, score_metrics
from mcspark.core.metrics.smooth_ece import GroupSmoothECE, group_smooth_ece


@dataclass(frozen=True)
class MetricRow:
    """One number of the metrics table; ``group``, ``levels`` and ``level`` are None where they do not apply.

    ``levels`` is the grid, ``level`` the place in it of a number about one level; metrics by level without a
    group are about all rows. Of a decision, ``level / levels`` is the threshold.
    """

    metric: str
    group: str | None
    levels: int | None
    value: float | None
    level: int | None = None


@dataclass(frozen=True)
class Metrics:
    """What was measured.

    Attributes
    ----------
    rows : int
    scores : dict of str to Found
        By their keys, the metrics of the score itself, without a grid.
    smooth : GroupSmoothECE
    by_level : dict of int to LevelErrors
    level_shares : dict of int to ndarray
        Share of the weight in each level of each grid.
    fullest : dict of int to FullestLevel or None
        Of each grid, the level with the largest share of the weight.
    lead : Lead
        The error that is spoken of first.
    floors : dict of int to NoiseFloor
        Under None, of the MA error of the score itself.
    intervals : Intervals or None
        Of the MC errors and the worst-group smECE; None where they were not asked for.
    groups : tuple of GroupSummary
        Errors at the second-coarsest grid, or the only one.
    reliability : Reliability
        On the grid of ``lead``.
    decisions : tuple of Decision
        At each threshold that was asked for.
    """

    rows: int
    scores: dict[str, Found]
    smooth: GroupSmoothECE
    by_level: dict[int, LevelErrors]
    level_shares: dict[int, FloatArray]
    fullest: dict[int, FullestLevel | None]
    lead: Lead
    floors: dict[int | None, NoiseFloor]
    intervals: Intervals | None
    groups: tuple[GroupSummary, ...]
    reliability: Reliability
    decisions: tuple[Decision, ...] = ()

    @property
    def loss(self) -> float | None:
        """Mean squared loss of the score itself (paper, definition 3.1)."""
        return self.scores["loss"].value

    @property
    def ma_worst_group(self) -> str | None:
        """Group with the largest MA error of the score itself; None where no group is large enough."""
        errors = [(_ma(g), g.group) for g in self.groups if not g.too_small]
        return max(errors, key=lambda found: found[0])[1] if errors else None

    def leading(self, name: str = "mc_error") -> float | None:
        """Error (``mc_error``), ``noise_floor`` or ``p_value`` of what is led with."""
        m = self.lead.levels
        if name == "mc_error" and m is not None:
            return self.by_level[m].mc_error
        floor = self.floors[m]
        return {"mc_error": floor.observed, "noise_floor": floor.expected, "p_value": floor.p_value}[name]

    def summary(self) -> dict[str, Any]:
        """The form of the summary line: plain JSON values, null where there is nothing to measure."""
        itself = self.floors[None]
        return {
            "worst_group_smece": self.smooth.worst,
            "smece_worst_group": self.smooth.worst_group,
            "smece_interval": _ends(self.intervals.smece) if self.intervals else None,
            "ma_error": itself.observed,
            "ma_noise_floor": itself.expected,
            "ma_p_value": itself.p_value,
            "ma_worst_group": self.ma_worst_group,
            **{key: found.value for key, found in self.scores.items()},
            "by_level": {
                str(m): {
                    "mc_error": e.mc_error,
                    "interval": _ends(self.intervals.mc_error[m]) if self.intervals else None,
                    "ma_error": e.ma_error,
                    "noise_floor": self.floors[m].expected,
                    "p_value": self.floors[m].p_value,
                    "loss": e.loss,
                    "level_sets": e.level_sets,
                    "worst_group": e.worst_group,
                    "fullest_level_share": full.share if (full := self.fullest[m]) else None,
                }
                for m, e in self.by_level.items()
            },
        }

    def table(self) -> Iterator[MetricRow]:
        """Every number, one row each."""
        yield MetricRow("rows", None, None, self.rows)
        for key, found in self.scores.items():
            if found.value is not None or self.loss is None:  # an AUC, say, needs two kinds of labels
                yield MetricRow(key, found.group, None, found.value)
        yield MetricRow("smece", None, None, self.smooth.overall)
        yield MetricRow("worst_group_smece", self.smooth.worst_group, None, self.smooth.worst)
        yield MetricRow("worst_group_smece_by_share", None, None, self.smooth.worst_by_share)
        if self.intervals:
            yield MetricRow("worst_group_smece_low", None, None, self.intervals.smece.low)
            yield MetricRow("worst_group_smece_high", None, None, self.intervals.smece.high)
        yield from self._of_score()
        for i, group in enumerate(self.groups):
            yield MetricRow("group_rows", group.group, None, group.rows)
            yield MetricRow("share", group.group, None, group.share)
            yield MetricRow("mean_score", group.group, None, group.mean_score)
            yield MetricRow("mean_label", group.group, None, group.mean_label)
            yield MetricRow("smece", group.group, None, float(self.smooth.groups[i]))
            yield MetricRow("too_small", group.group, None, float(group.too_small))
        for m, errors in self.by_level.items():
            yield from self._of_level(m, errors)
        for m, shares in self.level_shares.items():
            if m != self.reliability.m:  # of that grid there is more to say
                held = np.flatnonzero(shares).tolist()
                yield from (MetricRow("level_share", None, m, float(shares[i]), i) for i in held)
        for fact in self.reliability.facts():
            who, m, level = fact.group, self.reliability.m, fact.level
            yield MetricRow("level_rows", who, m, fact.rows, level)
            yield MetricRow("level_share", who, m, fact.share, level)
            yield MetricRow("level_mean_score", who, m, fact.mean_score, level)
            yield MetricRow("level_mean_label", who, m, fact.mean_label, level)
            if fact.error is not None:
                yield MetricRow("level_label_error", who, m, fact.error, level)
        for d in self.decisions:
            place = {"levels": d.threshold.denominator, "level": d.threshold.numerator}
            yield MetricRow("decision_rate", d.group, value=d.rate, **place)
            yield MetricRow("true_positive_rate", d.group, value=d.true_positive, **place)
            yield MetricRow("false_positive_rate", d.group, value=d.false_positive, **place)

    def _of_score(self) -> Iterator[MetricRow]:
        """The MA error of the score itself, without a grid."""
        floor = self.floors[None]
        yield MetricRow("ma_error", self.ma_worst_group, None, floor.observed)
        yield MetricRow("ma_noise_floor", None, None, floor.expected)
        for name, quantile in _ENDS:
            yield MetricRow(f"ma_noise_floor_{name}", None, None, floor.quantiles.get(quantile))
        yield MetricRow("ma_p_value", None, None, floor.p_value)
        for group in self.groups:
            yield MetricRow("group_ma_error", group.group, None, _ma(group))

    def _of_level(self, m: int, errors: LevelErrors) -> Iterator[MetricRow]:
        floor = self.floors[m]
        yield MetricRow("mc_error", errors.worst_group, m, errors.mc_error)
        yield MetricRow("ma_error", None, m, errors.ma_error)
        yield MetricRow("loss", None, m, errors.loss)
        yield MetricRow("level_sets", None, m, errors.level_sets)
        if full := self.fullest[m]:
            yield MetricRow("fullest_level_share", None, m, full.share, full.level)
        yield MetricRow("noise_floor", None, m, floor.expected)
        for name, quantile in _ENDS:
            yield MetricRow(f"noise_floor_{name}", None, m, floor.quantiles.get(quantile))
        yield MetricRow("p_value", None, m, floor.p_value)
        if self.intervals:
            yield MetricRow("mc_error_low", errors.worst_group, m, self.intervals.mc_error[m].low)
            yield MetricRow("mc_error_high", errors.worst_group, m, self.intervals.mc_error[m].high)
        for i, group in enumerate(self.groups):
            yield MetricRow("group_mc_error", group.group, m, float(errors.mc[i]))
            yield MetricRow("group_ma_error", group.group, m, float(errors.ma[i]))


_ENDS = (("low", QUANTILES[0]), ("high", QUANTILES[-1]))


def _ma(group: GroupSummary) -> float:
    """MA error of the score itself: the share of the group times its gap."""
    if group.mean_score is None or group.mean_label is None:
        return 0.0
    return group.share * abs(group.mean_score - group.mean_label)


def _ends(interval: Interval) -> list[float | None]:
    return [interval.low, interval.high]


class Elsewhere(Summed, Protocol):
    """Cells that are elsewhere: what they sum up to, and what chance does to them."""

    def noise_floor(
        self, levels: Sequence[int], draws: int, seed: int, *, min_rows: int
    ) -> dict[int | None, NoiseFloor]:
        """See :func:`mcspark.core.metrics.noise.noise_floor`."""

    def intervals(self, levels: Sequence[int], draws: int, seed: int, *, min_rows: int) -> Intervals:
        """See :func:`mcspark.core.metrics.intervals.bootstrap_intervals`."""


def _chance(
    cells: Cells | Elsewhere, levels: Sequence[int], draws: int, seed: int, min_rows: int, *, intervals: bool
) -> tuple[dict[int | None, NoiseFloor], Intervals | None]:
    """What chance does, drawn where the cells are."""
    if isinstance(cells, Cells):
        floors = noise_floor(cells, levels, draws, seed, min_rows=min_rows)
        return floors, (
            bootstrap_intervals(cells, levels, draws, seed, min_rows=min_rows) if intervals else None
        )
    floors = cells.noise_floor(levels, draws, seed, min_rows=min_rows)
    return floors, cells.intervals(levels, draws, seed, min_rows=min_rows) if intervals else None


def measure(
    cells: Cells | Elsewhere,
    levels: Sequence[int],
    *,
    draws: int,
    seed: int,
    min_rows: int,
    intervals: bool = False,
    lead: Lead | None = None,
    thresholds: Sequence[Fraction] = (),
) -> Metrics:
    """Measure everything on all of these cells.

    Parameters
    ----------
    cells : Cells or Elsewhere
        Of the rows to judge only.
    levels : sequence of int
        Grids; each must divide ``cells.bins.base``.
    draws, seed : int
        Of the simulations.
    min_rows : int
        Groups with fewer rows are left out of every maximum.
    intervals : bool
        Whether to bootstrap intervals too, which costs more than all the rest.
    lead : Lead, optional
        What to speak of first: of a calibration, chosen by both scores; otherwise by these cells.
    thresholds : sequence of Fraction
        Of decisions; each must be an edge of the base levels.
    """
    weight = {m: cells.level_sums("weight", m) for m in levels}
    fullest = {m: FullestLevel.of_weight(weight[m]) for m in levels}
    total = cells.total("weight")
    lead = Lead.among(levels, fullest.values()) if lead is None else lead
    by_level = {m: level_errors(cells, m, min_rows) for m in levels}
    floors, found = _chance(cells, levels, draws, seed, min_rows, intervals=intervals)
    middle = by_level[sorted(levels)[min(1, len(levels) - 1)]]
    return Metrics(
        rows=int(cells.total("n")),
        scores=score_metrics(cells, min_rows),
        smooth=group_smooth_ece(cells, min_rows),
        by_level=by_level,
        level_shares={m: weight[m] / (total if total > 0 else 1.0) for m in levels},
        fullest=fullest,
        lead=lead,
        floors=floors,
        intervals=found,
        groups=tuple(group_table(cells, middle)),
        reliability=Reliability.of(cells, lead.grid),
        decisions=decisions(cells, thresholds),
    )


def measure_change(
    before: Cells, after: Cells, levels: Sequence[int], *, draws: int, seed: int, min_rows: int, lead: Lead
) -> tuple[Metrics, Metrics]:
    """A score and the calibrated one; what chance explains is of the latter alone, which saves its time.

    See :func:`measure`.
    """
    first = measure(before, levels, draws=1, seed=seed, min_rows=min_rows, lead=lead)
    return first, measure(after, levels, draws=draws, seed=seed, min_rows=min_rows, lead=lead)

"""What a report is made of, and the words and numbers that every form of it shares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import pandas as pd

from mcspark.core.metrics.lead import Lead
from mcspark.core.metrics.score_metrics import SCORE_METRICS, ScoreMetric
from mcspark.report.metrics_table import AFTER, BEFORE, MetricsTable
from mcspark.report.segments import segment_records

SURPRISE = 0.05
"""Below this p-value, chance does not explain an error."""

BLUNT = 0.05
"""Where chance alone may show an error above this, its absence says little: nor above half the mean label."""

FEW_ROWS = 100
"""Fewer held-out rows say nothing, whatever their error."""

Standing = Literal["yes", "better", "no", "unclear", "unknown"]


@dataclass(frozen=True)
class RunFacts:
    """Everything that a report says about a run; nothing in it grows with the number of rows.

    Parameters
    ----------
    summary : mapping
        The summary line of the run.
    metrics : DataFrame
        Its metrics table.
    configuration : mapping
        Resolved, without secrets.
    versions : mapping of str to str
        Of the software.
    curves, pairs : DataFrame, optional
        ``MulticalibratorModel.curves()`` and ``.pairs()``, of a calibrator made of trees.
    training : DataFrame, optional
        Points of :func:`mcspark.core.training.training_curve.training_curve`.
    dropped : sequence of (str, str)
        Categories that are no groups, and why.
    segments : DataFrame, optional
        The table of segments, of a calibration by segment.
    ids : mapping of str to str
        By the name of a group in all of these, its id in the data, where that is another.
    """

    summary: Mapping[str, Any]
    metrics: pd.DataFrame
    configuration: Mapping[str, Any]
    versions: Mapping[str, str] = field(default_factory=dict)
    curves: pd.DataFrame | None = None
    pairs: pd.DataFrame | None = None
    training: pd.DataFrame | None = None
    dropped: Sequence[tuple[str, str]] = ()
    segments: pd.DataFrame | None = None
    ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def about(self) -> dict[str, str]:
        """What the configuration says of owner, intended use, licence and notes."""
        reported = self.configuration.get("report") or {}
        keys = ("owner", "intended_use", "licence", "notes")
        return {key.replace("_", " ").capitalize(): reported[key] for key in keys if reported.get(key)}

    @cached_property
    def table(self) -> MetricsTable:
        """The metrics, to look things up in."""
        return MetricsTable(self.metrics)

    @property
    def grid(self) -> int:
        """The grid that tables and pictures by level show."""
        return self.table.grid

    @property
    def lead(self) -> Lead:
        """The error that the report leads with, and the grids that are blind."""
        return self.table.lead

    @property
    def error_name(self) -> str:
        """Short name of the error that is led with."""
        return self.lead.error_name

    def leading(self, metric: str = "mc_error") -> float | None:
        """Error, noise floor or p-value of what is led with, of the score that the run is about."""
        return self.last(*self.lead.metric(metric))

    @property
    def calibrated(self) -> bool:
        """Whether there is a score after."""
        return AFTER in self.table.stages

    def change(self, metric: str, levels: int | None = None) -> tuple[float | None, float | None]:
        """A metric before and, of a calibration, after."""
        before = self.table.value(BEFORE, metric, levels)
        return before, self.table.value(AFTER, metric, levels) if self.calibrated else None

    def last(self, metric: str, levels: int | None = None) -> float | None:
        """A metric of the score that the run is about."""
        return self.table.value(self.table.last, metric, levels)

    @property
    def score_metrics(self) -> tuple[ScoreMetric, ...]:
        """The metrics of the score itself that the run measured."""
        return tuple(metric for metric in SCORE_METRICS if self.last(metric.key) is not None)

    @property
    def worst_group(self) -> str | None:
        """Group with the largest error, of that which is led with."""
        return self.table.group(self.table.last, *self.lead.metric("mc_error"))

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """90 % interval of the population's MC error; where no grid sees, of the worst group's smECE."""
        if self.lead.levels is None:
            return self.smece_interval
        return self.last("mc_error_low", self.grid), self.last("mc_error_high", self.grid)

    @property
    def smece_interval(self) -> tuple[float | None, float | None]:
        """90 % interval of the population's smECE in the worst group."""
        return self.last("worst_group_smece_low"), self.last("worst_group_smece_high")

    @property
    def seeing(self) -> tuple[int, ...]:
        """Grids that can tell the scores apart."""
        return tuple(m for m in self.table.grids if m not in self.lead.blind_grids)

    @property
    def surprising(self) -> tuple[int, ...]:
        """Grids that see, on which chance does not explain the error of the score that the run is about."""
        found = {m: self.last("p_value", m) for m in self.seeing}
        return tuple(m for m, p_value in found.items() if p_value is not None and p_value < SURPRISE)

    @property
    def standing(self) -> Standing:
        """Whether chance explains what is left of the error; if not, whether it fell."""
        p_value, (before, after) = self.leading("p_value"), self.change(*self.lead.metric("mc_error"))
        if p_value is None:
            return "unknown"
        if p_value >= SURPRISE:
            blunt = (self.leading("noise_floor_high") or 0.0) > min(BLUNT, self._rarer_label / 2)
            return "unclear" if blunt or (self.last("rows") or 0) < FEW_ROWS else "yes"
        return "better" if after is not None and before is not None and after < before else "no"

    @property
    def _rarer_label(self) -> float:
        """Share of the labels of 0, or of those of 1, whichever are fewer."""
        levels = self.table.by_level(self.table.last, None)
        mean = float((levels["share"] * levels["mean_label"]).sum())
        return min(mean, 1 - mean)

    @property
    def answer(self) -> str:
        """The words that the verdict begins with."""
        return ANSWERS[self.standing]

    @property
    def verdict(self) -> str:
        """One sentence, with the numbers that carry it."""
        if self.standing == "unknown":
            return f"{self.answer}: no group has enough held-out rows with a label and a weight."
        gridless = self.lead.levels is None
        before, after = (number(v) for v in self.change(*self.lead.metric("mc_error")))
        low, high = (number(v) for v in self.interval)
        where = f"on {count(self.last('rows'))} held-out rows"
        error = "the multiaccuracy error of the score itself"
        if not gridless:
            where, error = f"at {self.grid} levels {where}", "the multicalibration error"
        fell = f"went from {before} to {after}" if self.calibrated else f"is {before}"
        floor, p_value = (
            number(self.leading("noise_floor")),
            number(self.leading("p_value"), 3),
        )
        chance = {
            "yes": f"no more than chance explains (noise floor {floor}, p = {p_value}",
            "unclear": f"no more than chance explains with so few rows (noise floor {floor}, p = {p_value}",
            "better": f"closer to, but still above, what chance explains (noise floor {floor}, p = {p_value}",
            "no": f"more than chance explains (noise floor {floor}, p = {p_value}",
        }[self.standing]
        known = f"in the population {low} to {high} with 90 % confidence" if low != MISSING else ""
        of_error, of_smece = (f"; {known}" if known else "", "")
        if gridless:
            of_error, of_smece = "", f" ({known})" if known else ""
        return (
            f"{self.answer}: {where} {error} {fell}, {chance}{of_error}), "
            f"the worst group is {self.worst_group}, the worst group's smooth calibration error "
            f"{_became(self.change('worst_group_smece'), calibrated=self.calibrated)}{of_smece}, "
            f"and the squared loss "
            f"{_became(self.change('loss'), calibrated=self.calibrated)}."
        )

    def groups(self) -> pd.DataFrame:
        """One row a group, worst first: rows, share, means, error and smECE before and after.

        Returns
        -------
        DataFrame
            ``group, too_small, rows, share, mean_label``, then ``mean_score, error, smece`` with the suffixes
            ``_before`` and, of a calibration, ``_after``.
        """
        table, names = self.table, self.table.worst_first()
        columns: dict[str, Any] = {"group": names}
        for name in ("too_small", "group_rows", "share", "mean_label"):
            columns[name.removeprefix("group_")] = table.by_group(table.last, name).reindex(names).to_numpy()
        for name, metric, levels in (
            ("mean_score", "mean_score", None), ("error", *self.lead.metric("group_mc_error")),
            ("smece", "smece", None),
        ):  # fmt: skip
            for stage in table.stages:
                columns[f"{name}_{stage}"] = table.by_group(stage, metric, levels).reindex(names).to_numpy()
        return pd.DataFrame(columns)

    def segment_rows(self, most: int) -> list[dict[str, Any]]:
        """The first rows of the table of segments; nothing where there is none."""
        return [] if self.segments is None else segment_records(self.segments, most)

    def decisions(self) -> list[tuple[float, pd.DataFrame]]:
        """Each threshold of the configuration, and one row a group, all rows first.

        Returns
        -------
        list of (float, DataFrame)
            ``group`` (None for all rows), then ``rate, true_positive, false_positive`` with the suffixes
            ``_before`` and, of a calibration, ``_after``.
        """
        table = self.table
        places = table.rows(table.last, "decision_rate")[["levels", "level"]].drop_duplicates()
        tables = []
        for levels, level in places.to_numpy():
            columns: dict[str, Any] = {}
            for name, metric in _DECISIONS.items():
                for stage in table.stages:
                    rows = table.rows(stage, metric)
                    rows = rows[(rows["levels"] == levels) & (rows["level"] == level)]
                    columns.setdefault("group", [None if pd.isna(g) else g for g in rows["group"]])
                    columns[f"{name}_{stage}"] = rows["value"].to_numpy()
            tables.append((float(level / levels), pd.DataFrame(columns)))
        return tables

    def largest_pairs(self, stage: int, most: int = 12) -> list[tuple[str, str, float]]:
        """The pair terms of a stage that move members of both groups the most: two groups, correction."""
        if self.pairs is None:
            return []
        rows = self.pairs[self.pairs["stage"] == stage].head(most)
        return list(zip(rows["first"], rows["second"], rows["correction"], strict=True))


_DECISIONS = {
    "rate": "decision_rate",
    "true_positive": "true_positive_rate",
    "false_positive": "false_positive_rate",
}
ANSWERS = {
    "yes": "Yes, in every group that could be judged",
    "better": "Better, not perfect",
    "no": "No, not in every group",
    "unclear": "Too few rows to tell",
    "unknown": "There is nothing to judge",
}
MISSING = "–"
DIGITS, MOST_DIGITS = 4, 7


def number(value: float | None, digits: int | None = None) -> str:
    """A number as the report writes it: to four digits, or to two that say something; a dash for none."""
    if value is None or value != value:  # noqa: PLR0124  (NaN)
        return MISSING
    if digits is None:
        small = 0 < abs(value) < 1e-3
        digits = min(1 - math.floor(math.log10(abs(value))), MOST_DIGITS) if small else DIGITS
    return f"{value:.{digits}f}"


def count(value: float | None) -> str:
    """A count with its thousands apart; a dash for none."""
    return MISSING if value is None or value != value else f"{int(value):,}"  # noqa: PLR0124


def share(value: float | None) -> str:
    """A share in percent; a dash for none."""
    return MISSING if value is None or value != value else f"{100 * value:.1f} %"  # noqa: PLR0124


def _became(values: tuple[float | None, float | None], *, calibrated: bool) -> str:
    before, after = (number(v) for v in values)
    return f"went from {before} to {after}" if calibrated else f"is {before}"

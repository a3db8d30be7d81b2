"""The metrics table of a run, as pandas: one way to make it, and one to look things up in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from mcspark.core.metrics.lead import FullestLevel, Lead
from mcspark.core.metrics.metrics import Metrics

COLUMNS = ("split", "stage", "metric", "group", "levels", "value", "level")
MetricTuple = tuple[str, str, str, str | None, int | None, float | None, int | None]
BEFORE, AFTER = "before", "after"


def metric_rows(measured: Mapping[str, Metrics], split: str = "test") -> Iterator[MetricTuple]:
    """Every number of the metrics of each stage (``before``, ``after``), one row each, in :data:`COLUMNS`."""
    for stage, metrics in measured.items():
        for row in metrics.table():
            value = None if row.value is None else float(row.value)
            yield split, stage, row.metric, row.group, row.levels, value, row.level


def metrics_frame(measured: Mapping[str, Metrics]) -> pd.DataFrame:
    """The metrics table; ``group``, ``levels`` and ``level`` are null where they do not apply."""
    frame = pd.DataFrame(list(metric_rows(measured)), columns=list(COLUMNS))
    return frame.astype({"value": "float64"})


def _check_types(frame: pd.DataFrame) -> None:
    for name in ("levels", "value", "level"):
        numbers = pd.api.types.is_numeric_dtype(frame[name])
        if not numbers and (name == "value" or not frame[name].isna().all()):
            raise ValueError(f"no metrics table: the column {name!r} holds no numbers")
        if name != "value" and not (frame[name].dropna() % 1 == 0).all():
            raise ValueError(f"no metrics table: the column {name!r} holds more than whole numbers")
    for name in ("split", "stage", "metric", "group"):
        if not frame[name].dropna().map(lambda value: isinstance(value, str)).all():
            raise ValueError(f"no metrics table: the column {name!r} holds more than text")


def of_score(frame: pd.DataFrame, score: str | None) -> pd.DataFrame:
    """The rows of one score of a table of several; the table itself where it is of one.

    Raises
    ------
    ValueError
        If it is of several scores, and of this one it has none, or it is not said which.
    """
    if "score" not in frame.columns:
        return frame
    found = frame[frame["score"] == score].drop(columns="score")
    if not len(found):
        names = ", ".join(sorted(set(map(str, frame["score"]))))
        raise ValueError(f"a metrics table of the scores {names}: say which one is meant")
    return found.reset_index(drop=True)


class MetricsTable:
    """Look-ups in a metrics table.

    Parameters
    ----------
    frame : DataFrame
        As a run writes it (``pandas.read_parquet`` of the summary's ``paths.metrics``), or of
        :func:`metrics_frame`.

    Raises
    ------
    ValueError
        If a column is missing or of another type, or there is no number of rows or by grid.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        if missing := sorted(set(COLUMNS) - set(frame.columns)):
            raise ValueError(f"no metrics table: the column(s) {missing} are missing, of {list(COLUMNS)}")
        _check_types(frame)
        place = [name for name in COLUMNS if name != "value"]
        if (again := frame.duplicated(place)).any():
            raise ValueError(f"no metrics table: {int(again.sum())} number(s) stand twice")
        self.frame = frame
        self._by_metric = dict(tuple(frame.groupby(["stage", "metric"], sort=False)))
        grids = frame.loc[frame["metric"] == "level_sets", "levels"].dropna()
        self.grids = tuple(sorted({int(m) for m in grids}))
        if not self.grids:
            raise ValueError("no metrics table: it holds no metric of any grid")
        if not self.stages:
            raise ValueError("no metrics table: it does not say how many rows were measured")
        self.lead = self._lead()
        self.grid = self.lead.grid

    @classmethod
    def of(cls, metrics: pd.DataFrame | MetricsTable) -> MetricsTable:
        """The table of a frame, or the table itself."""
        return metrics if isinstance(metrics, MetricsTable) else cls(metrics)

    @property
    def stages(self) -> tuple[str, ...]:
        """``before`` and, of a calibration, ``after``."""
        return tuple(s for s in (BEFORE, AFTER) if (s, "rows") in self._by_metric)

    @property
    def last(self) -> str:
        """The score that the run is about."""
        return self.stages[-1]

    def _lead(self) -> Lead:
        """What the run led with: its blind grids, and the grid of its numbers by level."""
        fullest = [*self._fullest(BEFORE), *self._fullest(AFTER)]
        found = Lead.among(self.grids, fullest)
        shown = self.frame.loc[self.frame["metric"] == "level_rows", "levels"]
        return found if shown.empty else Lead(int(shown.iloc[0]), found.blind)

    def blind(self, stage: str) -> dict[int, int]:
        """The grids that are blind to this score, and the level that holds nearly all of it."""
        return {found.m: found.level for found in self._fullest(stage) if found.blind}

    def _fullest(self, stage: str) -> list[FullestLevel]:
        """The fullest level of every grid, by this score."""
        found = self.rows(stage, "fullest_level_share")[["levels", "level", "value"]].to_numpy()
        return [FullestLevel(int(m), int(level), float(share), stage == AFTER) for m, level, share in found]

    def rows(self, stage: str, metric: str) -> pd.DataFrame:
        """All rows of one metric; none where it was not measured."""
        return self._by_metric.get((stage, metric), self.frame.iloc[:0])

    def value(self, stage: str, metric: str, levels: int | None = None) -> float | None:
        """The one number of a metric, on one grid if it is by grid; None where there is none."""
        rows = self.rows(stage, metric)
        rows = rows[rows["level"].isna()]
        rows = rows[rows["levels"].isna()] if levels is None else rows[rows["levels"] == levels]
        if metric == "smece":
            rows = rows[rows["group"].isna()]
        found = rows["value"].dropna()
        return None if found.empty else float(found.iloc[0])

    def group(self, stage: str, metric: str, levels: int | None = None) -> str | None:
        """The group that a maximum is attained in."""
        rows = self.rows(stage, metric)
        rows = rows[rows["levels"].isna()] if levels is None else rows[rows["levels"] == levels]
        found = rows["group"].dropna()
        return None if found.empty else str(found.iloc[0])

    def by_group(self, stage: str, metric: str, levels: int | None = None) -> pd.Series:
        """Values of a metric by group, in the order of the groups."""
        rows = self.rows(stage, metric)
        rows = rows[rows["group"].notna()]
        rows = rows[rows["levels"].isna()] if levels is None else rows[rows["levels"] == levels]
        return rows.set_index("group")["value"]

    def by_grid(self, stage: str, metric: str) -> pd.Series:
        """Values of a metric by grid."""
        rows = self.rows(stage, metric)
        rows = rows[rows["levels"].notna() & rows["level"].isna()]
        return pd.Series(rows["value"].to_numpy(), index=rows["levels"].astype(int)).sort_index()

    def by_level(self, stage: str, group: str | None) -> pd.DataFrame:
        """Rows, share, mean score, mean label and its standard error of one group (None: all), by level."""
        columns = {}
        for name in ("rows", "share", "mean_score", "mean_label", "label_error"):
            rows = self.rows(stage, f"level_{name}")
            rows = rows[rows["group"].isna()] if group is None else rows[rows["group"] == group]
            rows = rows[rows["levels"] == self.grid]
            columns[name] = pd.Series(rows["value"].to_numpy(), index=rows["level"].astype(int))
        return pd.DataFrame(columns).sort_index()

    def level_shares(self, stage: str) -> dict[int, pd.Series]:
        """Share of all rows in each level, by grid; levels without rows are left out."""
        rows = self.rows(stage, "level_share")
        rows = rows[rows["group"].isna()]
        by_grid = {m: rows[rows["levels"] == m] for m in self.grids}
        return {
            m: pd.Series(part["value"].to_numpy(), index=part["level"].astype(int))
            for m, part in by_grid.items()
            if len(part)
        }

    def gaps(self, stage: str) -> pd.DataFrame:
        """Mean score less mean label by group (index) and level (columns); NaN where there are no rows."""
        score, label = (self._grid_of(stage, f"level_mean_{what}") for what in ("score", "label"))
        return score - label

    def level_rows(self, stage: str) -> pd.DataFrame:
        """Number of rows by group (index) and level (columns)."""
        return self._grid_of(stage, "level_rows").fillna(0)

    def _grid_of(self, stage: str, metric: str) -> pd.DataFrame:
        rows = self.rows(stage, metric)
        rows = rows[rows["group"].notna()]
        table = rows.assign(level=rows["level"].astype(int)).pivot(
            index="group", columns="level", values="value"
        )
        return table.reindex(index=self.by_group(self.last, "share").index, columns=range(self.grid))

    def worst_first(self) -> list[str]:
        """Groups by the error before that is led with; those with too few rows come last."""
        errors = self.by_group(BEFORE, *self.lead.metric("group_mc_error"))
        small = self.by_group(BEFORE, "too_small").reindex(errors.index).fillna(0)
        order = pd.DataFrame({"small": small, "error": -errors}).sort_values(
            ["small", "error"], kind="stable"
        )
        return [str(name) for name in order.index]

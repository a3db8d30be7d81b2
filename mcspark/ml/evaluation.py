"""Evaluators: one number from a scored table, in the manner of Spark ML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark import keyword_only
from pyspark.ml.evaluation import Evaluator
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.sql import DataFrame

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.calibration_error import level_errors
from mcspark.core.metrics.score_metrics import SCORE_METRICS
from mcspark.core.metrics.smooth_ece import group_smooth_ece
from mcspark.ml.cells.cells import ScoredColumns, make_cells
from mcspark.ml.cells.fixed_point import FixedPoint
from mcspark.ml.cells.groups import GroupSet, with_categories
from mcspark.ml.cells.working import WORKING, working_columns
from mcspark.ml.converters import named, one_of, whole

_OF_SCORE = {metric.key: metric for metric in SCORE_METRICS if metric.larger_is_better is not None}
METRICS = ("mc_error", "ma_error", "worst_group_smece", *_OF_SCORE)
_HALVINGS = 2


class MulticalibrationEvaluator(Evaluator):
    """Measures a score against labels inside groups.

    Parameters
    ----------
    groups : GroupSet, FittedGroups or mapping
        Groups to choose on the table, groups chosen before, or the ``groups`` section of a configuration.
    levels : int
        Grid m; the score is judged as its m-discretized version (paper, section 4.3.2).
    metricName : {'mc_error', 'ma_error', 'worst_group_smece', 'loss', 'log_loss', 'auc', ...}
        All but the first two are of the score itself: smECE, and what
        :data:`mcspark.core.metrics.score_metrics.SCORE_METRICS` names.
    predictionCol, labelCol : str
        Doubles in [0, 1]; rows with a null label are left out.
    weightCol : str, optional

    Examples
    --------
    >>> MulticalibrationEvaluator(groups=groups, levels=20).evaluate(scored)   # doctest: +SKIP
    0.0048
    """

    levels: Param[int] = Param(Params._dummy(), "levels", "grid m", named("levels", whole(1, 1000)))
    metricName: Param[str] = Param(
        Params._dummy(),
        "metricName",
        f"one of {', '.join(METRICS)}",
        named("metricName", one_of(*METRICS)),
    )
    predictionCol: Param[str] = Param(
        Params._dummy(),
        "predictionCol",
        "column of the score",
        TypeConverters.toString,
    )
    labelCol: Param[str] = Param(Params._dummy(), "labelCol", "column of the label", TypeConverters.toString)
    weightCol: Param[str] = Param(
        Params._dummy(),
        "weightCol",
        "column of the weight",
        TypeConverters.toString,
    )

    @keyword_only
    def __init__(
        self,
        *,
        groups: GroupSet | FittedGroups | Mapping[str, Any],
        levels: int = 20,
        metricName: str = "mc_error",
        predictionCol: str = "calibrated_score",
        labelCol: str = "label",
        weightCol: str | None = None,
    ) -> None:
        super().__init__()
        given = groups if isinstance(groups, GroupSet | FittedGroups) else GroupSet.from_config(groups)
        self._groups = given.measured
        kwargs = {k: v for k, v in vars(self)["_input_kwargs"].items() if k != "groups" and v is not None}
        self._setDefault(levels=20, metricName="mc_error", predictionCol="calibrated_score", labelCol="label")
        self._set(**kwargs)

    def isLargerBetter(self) -> bool:
        """Whether a larger value is better: of AUC and PR-AUC, all others are errors."""
        metric = _OF_SCORE.get(self.getOrDefault("metricName"))
        return metric is not None and bool(metric.larger_is_better)

    def cells(self, dataset: DataFrame) -> Cells:
        """The cells that every metric is computed from."""
        get = self.getOrDefault
        weight = get("weightCol") if self.isSet("weightCol") else None
        columns = ScoredColumns(get("predictionCol"), get("labelCol"), weight)
        names = replace(WORKING, weight=WORKING.weight if weight else None, split=None)
        frame = working_columns(dataset, columns, labelled=True)
        frame = with_categories(frame, self._groups.families)
        scale, rows = FixedPoint.counted(frame, names.weight)
        base = get("levels") * max(1, -(-300 // get("levels")))
        bins = ScoreBins(base, (_HALVINGS,) * base)
        with make_cells(frame, names, self._groups.families, bins, scale, rows=rows) as table:
            if isinstance(self._groups, FittedGroups):
                return table.collect(self._groups)
            return table.collect_chosen(self._groups)[0]

    def _evaluate(self, dataset: DataFrame) -> float:
        cells, metric = self.cells(dataset), self.getOrDefault("metricName")
        value: float | None
        if metric in _OF_SCORE:
            value = _OF_SCORE[metric].of(cells, 1).value
        elif metric == "worst_group_smece":
            value = group_smooth_ece(cells).worst
        else:
            value = getattr(level_errors(cells, self.getOrDefault("levels")), metric)
        return float("nan") if value is None else value

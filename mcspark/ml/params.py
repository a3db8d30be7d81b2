"""Parameters that calibrators and their models share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.ml.param import Param, Params, TypeConverters

from mcspark.ml.cells import ScoredColumns
from mcspark.ml.groups import GroupSet

_PARAMETERS: dict[str, tuple[str, Any, Any]] = {
    "scoreCol": ("column of the score, a double in [0, 1]", TypeConverters.toString, "score"),
    "labelCol": ("column of the label in [0, 1]; null: not labelled", TypeConverters.toString, "label"),
    "weightCol": ("column of the non-negative weight", TypeConverters.toString, None),
    "splitCol": ("column that says fit, early_stopping or test", TypeConverters.toString, "split"),
    "predictionCol": ("column to add: the calibrated score", TypeConverters.toString, "calibrated_score"),
    "learningRate": ("shrinkage of each tree, in (0, 1]", TypeConverters.toFloat, 0.1),
    "featureFraction": ("share of the features each tree may use, in (0, 1]", TypeConverters.toFloat, 1.0),
    "maxTrees": ("most trees of a stage", TypeConverters.toInt, 5000),
    "earlyStoppingRounds": (
        "trees without a lower held-out loss before a stage ends",
        TypeConverters.toInt,
        50,
    ),
    "link": ("identity, or logit for cross-entropy on the log-odds", TypeConverters.toString, "identity"),
    "rounds": ("number of stages, or auto", TypeConverters.toString, "1"),
    "scoreBins": ("wanted equally heavy score bins beside the level edges", TypeConverters.toInt, 255),
    "minRowsInLeaf": ("fewest rows in a leaf, counted in weight", TypeConverters.toInt, 20),
    "seed": ("seed of the training", TypeConverters.toInt, 1),
    "levels": ("evaluation grids", TypeConverters.toListInt, [10, 20, 30, 50, 75, 100]),
    "timeoutSeconds": ("wall-clock limit of training one ensemble", TypeConverters.toFloat, 3600.0),
}


class CalibratorParams(Params):
    """Columns and settings of a calibrator, as Spark ML parameters.

    Every entry of the table above is a :class:`Param` of the class, such as ``scoreCol``.
    """

    groups: Param[Any] = Param(Params._dummy(), "groups", "the groups: a GroupSet")

    def __init__(self) -> None:
        super().__init__()
        defaults = {name: default for name, (_, _, default) in _PARAMETERS.items() if default is not None}
        self._setDefault(**defaults)

    def setGroups(self, value: GroupSet | Mapping[str, Any]) -> CalibratorParams:
        """Set the groups, as a :class:`GroupSet` or the ``groups`` section of a configuration."""
        groups = value if isinstance(value, GroupSet) else GroupSet.from_config(value)
        self._set(groups=groups)
        return self

    def getGroups(self) -> GroupSet:
        """The groups."""
        if not self.isSet("groups"):
            raise ValueError("groups are not set; pass groups=GroupSet.from_config({...})")
        groups: GroupSet = self.getOrDefault("groups")
        return groups

    def setScoreCol(self, value: str) -> CalibratorParams:
        """Set the score column."""
        self._set(scoreCol=value)
        return self

    def setPredictionCol(self, value: str) -> CalibratorParams:
        """Set the column that the model adds."""
        self._set(predictionCol=value)
        return self

    def _columns(self) -> ScoredColumns:
        weight = self.getOrDefault("weightCol") if self.isSet("weightCol") else None
        get = self.getOrDefault
        return ScoredColumns(get("scoreCol"), get("labelCol"), weight, get("splitCol"))


for _name, (_doc, _converter, _) in _PARAMETERS.items():
    setattr(CalibratorParams, _name, Param(Params._dummy(), _name, _doc, _converter))

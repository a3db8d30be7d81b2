"""Parameters that calibrators and their models share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from pyspark.ml.param import Param, Params, TypeConverters

from mcspark.core.training.recipe import SEARCHED
from mcspark.ml.cells.cells import ScoredColumns
from mcspark.ml.cells.groups import GroupSet
from mcspark.ml.converters import above_zero, grids, named, one_of, rounds, whole

Table = dict[str, tuple[str, Any, Any]]
"""Name of each parameter: what it means, the converter of its value, and its default (None: unset)."""

SomeParams = TypeVar("SomeParams", bound="CalibratorParams")

_SHARED: Table = {
    "scoreCol": ("column of the score, a double in [0, 1]", TypeConverters.toString, "score"),
    "labelCol": ("column of the label in [0, 1]; null: not labelled", TypeConverters.toString, "label"),
    "weightCol": ("column of the non-negative weight", TypeConverters.toString, None),
    "splitCol": ("column that says fit, early_stopping or test", TypeConverters.toString, "split"),
    "predictionCol": ("column to add: the calibrated score", TypeConverters.toString, "calibrated_score"),
    "scoreBins": ("wanted equally heavy score bins beside the level edges", whole(0, 100_000), 255),
    "levels": ("evaluation grids", grids, [10, 20, 30, 50, 75, 100]),
}

_TREES: Table = {
    "recipe": (
        "auto: link, learningRate, minRowsInLeaf, earlyStoppingRounds, rounds and refit are chosen by the "
        "rows and their early-stopping loss, except those that are set; paper: they are taken as they stand",
        one_of("auto", "paper"),
        "auto",
    ),
    "learningRate": ("shrinkage of each tree, in (0, 1]", above_zero(1), 0.1),
    "featureFraction": ("share of the features each tree may use, in (0, 1]", above_zero(1), 1.0),
    "maxTrees": ("most trees of a stage", whole(1, 100_000), 5000),
    "earlyStoppingRounds": (
        "trees without a lower held-out loss before a stage ends",
        whole(1, 100_000),
        50,
    ),
    "link": ("identity, or logit for cross-entropy on the log-odds", one_of("identity", "logit"), "identity"),
    "rounds": ("number of stages, or auto", rounds, "1"),
    "minRowsInLeaf": ("fewest rows in a leaf, effective ones where weights differ", whole(1), 20),
    "refit": (
        "choose the number of trees held out, then grow them on all rows that are not test",
        TypeConverters.toBoolean,
        False,
    ),
    "monotone": (
        "let the calibrated score never fall where the score rises and the groups stay",
        TypeConverters.toBoolean,
        False,
    ),
    "engine": (
        "what grows the trees: synapseml in the cluster, lightgbm on the driver, or auto",
        one_of("auto", "synapseml", "lightgbm"),
        "auto",
    ),
    "seed": ("seed of the training", whole(0), 1),
    "timeoutSeconds": ("wall-clock limit of training one ensemble", above_zero(1e9), 3600.0),
}


def camel(name: str) -> str:
    """``max_rounds`` as a parameter of Spark ML is called: ``maxRounds``."""
    return re.sub("_(.)", lambda found: found[1].upper(), name)


def snake(name: str) -> str:
    """Inverse of :func:`camel`."""
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


SEARCHED_PARAMS = {name: camel(name) for name in SEARCHED}
"""Settings that the recipe ``auto`` may choose, with their parameters."""


def with_parameters(table: Table) -> Callable[[type[SomeParams]], type[SomeParams]]:
    """Class decorator: add a :class:`Param` for every entry of the table, with its default."""

    def add(cls: type[SomeParams]) -> type[SomeParams]:
        for name, (doc, converter, _) in table.items():
            setattr(cls, name, Param(Params._dummy(), name, doc, named(name, converter)))
        defaults = {name: default for name, (_, _, default) in table.items() if default is not None}
        cls.defaults = {**cls.defaults, **defaults}
        return cls

    return add


class CalibratorParams(Params):
    """Columns and bins that every calibrator has, as Spark ML parameters such as ``scoreCol``."""

    defaults: ClassVar[dict[str, Any]] = {}

    groups: Param[Any] = Param(Params._dummy(), "groups", "the groups: a GroupSet")

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(**self.defaults)

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


with_parameters(_SHARED)(CalibratorParams)


@with_parameters(_TREES)
class TreeParams(CalibratorParams):
    """Settings of the trees, such as ``learningRate``, beside those that every calibrator has."""

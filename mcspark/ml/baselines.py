"""The paper's baselines as estimators of the same kind as ``Multicalibrator``.

They learn from the same cells, give the same kind of model, and are saved, loaded and scored like it; so a
comparison is a loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.ml import Estimator
from pyspark.ml.param import TypeConverters
from pyspark.sql import DataFrame

from mcspark.core.baselines.multiaccuracy import PENALTIES
from mcspark.core.calibrator import BASELINES, SignatureCalibrator
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.model.stages import Stages
from mcspark.errors import ConfigurationError, ContractError
from mcspark.ml.cells.groups import GroupSet
from mcspark.ml.converters import above_zero, penalties, whole
from mcspark.ml.fit_summary import FitSummary, trees_of
from mcspark.ml.learning import learning_cells
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.ml.params import CalibratorParams, snake, with_parameters


class Baseline(CalibratorParams, Estimator["MulticalibratorModel"]):
    """What the baselines share.

    Parameters
    ----------
    groups : GroupSet or mapping
        The groups, or the ``groups`` section of a configuration.
    **settings
        Any other parameter by name; those of every calibrator are ``scoreCol``, ``labelCol``,
        ``weightCol``, ``splitCol``, ``predictionCol``, ``scoreBins`` and ``levels``.
    """

    method: ClassVar[str]
    """Name of the method in models, summaries and configurations."""

    def __init__(self, *, groups: GroupSet | Mapping[str, Any] | None = None, **settings: Any) -> None:
        super().__init__()
        if unknown := sorted(name for name in settings if not self.hasParam(name)):
            raise TypeError(f"{type(self).__name__} has no parameter {', '.join(unknown)}")
        self._set(**{name: value for name, value in settings.items() if value is not None})
        if groups is not None:
            self.setGroups(groups)

    def _fit(self, dataset: DataFrame) -> MulticalibratorModel:
        return self.fit_cells(*learning_cells(dataset, self, self.grids))

    @property
    def grids(self) -> tuple[int, ...]:
        """Grids whose edges must be score bin edges, beside those of the evaluation."""
        return (self.getOrDefault("grid"),) if self.hasParam("grid") else ()

    def fit_cells(self, cells: Cells, groups: FittedGroups) -> MulticalibratorModel:
        """Learn from cells that are already there.

        Parameters
        ----------
        cells : Cells
            Their bins' edges contain those of :attr:`grids`.
        groups : FittedGroups
            The groups that the cells' membership is about.

        Raises
        ------
        ContractError
            If there are no cells.
        ConfigurationError
            If there are features: trees alone learn from columns.
        """
        if groups.features:
            raise ConfigurationError(
                f"the method {self.method!r} does not learn from columns; leave features out, or take trees"
            )
        if not len(cells):
            raise ContractError("there is no labelled row to learn from; check the label column")
        calibrator = self._learn(cells)
        model = MulticalibratorModel(groups, calibrator, method=self.method)
        model.summary = FitSummary(groups.names, trees_of(calibrator), cells=cells)
        return self._copyValues(model)

    def _learn(self, cells: Cells) -> SignatureCalibrator:
        """The calibrator that the method finds; early-stopping rows end it, or choose."""
        settings = {snake(name): self.getOrDefault(name) for name in self.own_params()}
        return BASELINES[self.method].learn(cells, settings)

    @classmethod
    def own_params(cls) -> set[str]:
        """Names of the parameters that not every calibrator has."""
        return set(cls.defaults) - set(CalibratorParams.defaults)


_PENALISED: dict[str, Any] = {
    "penalties": (
        "strengths of the l1 penalty; the early-stopping rows choose one",
        penalties,
        list(PENALTIES),
    )
}


class Uncalibrated(Baseline):
    """The score as it is."""

    method = "none"

    def _learn(self, cells: Cells) -> SignatureCalibrator:
        return Stages((), cells.groups)


@with_parameters(_PENALISED)
class Multiaccuracy(Baseline):
    """A linear model of the groups on top of the score (see ``core.baselines.multiaccuracy``).

    Parameters
    ----------
    penalties : list of float
        Strengths of the l1 penalty, none negative.
    """

    method = "multiaccuracy"


@with_parameters(
    {
        "grid": ("grid m of the level sets that are patched", whole(1, 1000), 20),
        "maxPatches": ("most patches", whole(1), 10_000),
        "patience": ("patches without a lower held-out loss before the end", whole(1), 100),
    }
)
class MCBoost(Baseline):
    """Patches the worst (group, level) again and again (see ``core.baselines.mcboost``).

    Parameters
    ----------
    grid : int
        Number of levels m; calibrated scores are the middles of levels.
    maxPatches, patience : int
    """

    method = "mcboost"


@with_parameters(
    {
        "grid": ("grid m of the level sets", whole(1, 1000), 20),
        "depth": ("depth of the weak trees, 1 or 2", whole(1, 2), 1),
        "learningRate": ("length of a step, in (0, 1]", above_zero(1), 1.0),
        "subsample": ("share of the rows that a round's trees see", above_zero(1), 1.0),
        "maxRounds": ("most rounds", whole(1), 100),
        "patience": ("rounds in which nothing moves before the end", whole(1), 10),
        "seed": ("seed of the subsamples", whole(0), 1),
    }
)
class LSBoost(Baseline):
    """A weak tree of the groups on every level set, round after round (see ``core.baselines.lsboost``).

    Parameters
    ----------
    grid : int
        Number of levels m; calibrated scores are the middles of levels.
    depth, maxRounds, patience, seed : int
    learningRate, subsample : float
    """

    method = "lsboost"


@with_parameters(
    {
        "maxRounds": ("most trees", whole(1), 500),
        "patience": ("trees without a lower held-out loss before the end", whole(1), 50),
        "minRowsInLeaf": ("fewest rows in a leaf", whole(1), 20),
    }
)
class SquareLev(Baseline):
    """SquareLev.R with exact trees of depth 2 (see ``core.baselines.squarelev``).

    Parameters
    ----------
    maxRounds, patience, minRowsInLeaf : int
    """

    method = "squarelev"


@with_parameters(
    {
        "byGroup": (
            "a map for each group; a row gets the mean of those of its groups",
            TypeConverters.toBoolean,
            False,
        )
    }
)
class Recalibration(Baseline):
    """A map of the score, of everybody or for each group (see ``core.baselines.recalibration``).

    Parameters
    ----------
    byGroup : bool
    """


class Isotonic(Recalibration):
    """Isotonic regression of the labels on the score."""

    method = "isotonic"


class Platt(Recalibration):
    """Platt scaling: a line on the scale of log-odds."""

    method = "platt"


class Temperature(Recalibration):
    """Temperature scaling: log-odds times a number."""

    method = "temperature"


@with_parameters(_PENALISED)
class CalibratedMultiaccuracy(Baseline):
    """Multiaccuracy, then isotonic regression on its score (see ``core.baselines.calibrated_multiaccuracy``).

    Parameters
    ----------
    penalties : list of float
        Strengths of the l1 penalty, none negative.
    """

    method = "calibrated_multiaccuracy"


_ALL: tuple[type[Baseline], ...] = (
    Uncalibrated, Multiaccuracy, MCBoost, LSBoost, SquareLev, Isotonic, Platt, Temperature,
    CalibratedMultiaccuracy,
)  # fmt: skip
ESTIMATORS: dict[str, type[Baseline]] = {kind.method: kind for kind in _ALL}
"""The baselines by their names in a configuration."""

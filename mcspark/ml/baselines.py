"""The paper's baselines as estimators of the same kind as ``Multicalibrator``.

They learn from the same cells, give the same kind of model, and are saved, loaded and scored like it; so a
comparison is a loop.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.ml import Estimator
from pyspark.sql import DataFrame

from mcspark.core.baselines.lsboost import fit_lsboost
from mcspark.core.baselines.mcboost import fit_mcboost
from mcspark.core.baselines.multiaccuracy import PENALTIES, fit_multiaccuracy
from mcspark.core.baselines.squarelev import fit_squarelev
from mcspark.core.calibrator import SignatureCalibrator
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.model.stages import Stages
from mcspark.errors import ContractError
from mcspark.ml.converters import above_zero, penalties, whole
from mcspark.ml.fit_summary import FitSummary, trees_of
from mcspark.ml.groups import GroupSet
from mcspark.ml.learning import learning_cells
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.ml.params import CalibratorParams, with_parameters


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
        """
        if not len(cells):
            raise ContractError("there is no labelled row to learn from; check the label column")
        calibrator = self._learn(cells.of_role(Role.fit), cells.of_role(Role.early_stopping))
        model = MulticalibratorModel(groups, calibrator, method=self.method)
        model.summary = FitSummary(groups.names, trees_of(calibrator), cells=cells)
        return self._copyValues(model)

    @abstractmethod
    def _learn(self, fit: Cells, stop: Cells) -> SignatureCalibrator:
        """The calibrator that the method finds on ``fit``, ended or chosen on ``stop``."""


class Uncalibrated(Baseline):
    """The score as it is."""

    method = "none"

    def _learn(self, fit: Cells, stop: Cells) -> SignatureCalibrator:
        del stop
        return Stages((), fit.groups)


@with_parameters(
    {
        "penalties": (
            "strengths of the l1 penalty; the early-stopping rows choose one",
            penalties,
            list(PENALTIES),
        )
    }
)
class Multiaccuracy(Baseline):
    """A linear model of the groups on top of the score (see ``core.baselines.multiaccuracy``).

    Parameters
    ----------
    penalties : list of float
        Strengths of the l1 penalty, none negative.
    """

    method = "multiaccuracy"

    def _learn(self, fit: Cells, stop: Cells) -> SignatureCalibrator:
        return fit_multiaccuracy(fit, stop, self.getOrDefault("penalties"))


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

    def _learn(self, fit: Cells, stop: Cells) -> SignatureCalibrator:
        get = self.getOrDefault
        return fit_mcboost(fit, stop, get("grid"), max_patches=get("maxPatches"), patience=get("patience"))


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

    def _learn(self, fit: Cells, stop: Cells) -> SignatureCalibrator:
        get = self.getOrDefault
        return fit_lsboost(
            fit, stop, get("grid"), depth=get("depth"), learning_rate=get("learningRate"),
            subsample=get("subsample"), max_rounds=get("maxRounds"), patience=get("patience"),
            seed=get("seed"),
        )  # fmt: skip


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

    def _learn(self, fit: Cells, stop: Cells) -> SignatureCalibrator:
        get = self.getOrDefault
        return fit_squarelev(
            fit, stop, max_rounds=get("maxRounds"), patience=get("patience"),
            min_rows_in_leaf=get("minRowsInLeaf"),
        )  # fmt: skip

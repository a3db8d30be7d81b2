"""What a calibration method is to all that offer, save or compare methods; each baseline's module has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import FloatArray, IntArray, ScoreBins

Settings = Mapping[str, Any]
"""Settings of a method by their names in the configuration; the grid m is ``grid``."""

Setting = tuple[tuple[str, float], ...]
"""Hyperparameters that a comparison chooses among, as (name, value) pairs."""


class SignatureCalibrator(Protocol):
    """What every fitted calibrator can do: score rows by the groups of their signature."""

    def apply_signatures(self, score: FloatArray, signature: IntArray, membership: Any, /) -> FloatArray:
        """Calibrated scores, shape (N,), range [0, 1].

        Parameters
        ----------
        score : ndarray, shape (N,), range [0, 1]
        signature : ndarray of int, shape (N,)
            Row of ``membership`` of each score.
        membership : ndarray of bool, shape (S, G)
            Of trees that have learned from columns, also lists (:data:`mcspark.core.model.additive.Members`).
        """

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""


class FittedBaseline(SignatureCalibrator, Protocol):
    """A calibrator that knows how many groups it is about."""

    @property
    def n_groups(self) -> int:
        """Columns that ``membership`` must have."""


def calibrated_cells(calibrator: SignatureCalibrator, cells: Cells, bins: ScoreBins) -> Cells:
    """Cells of the calibrated score where the rows are not at hand: a cell is where its mean score goes.

    Parameters
    ----------
    calibrator : SignatureCalibrator
    cells : Cells
    bins : ScoreBins
        Of the calibrated score.
    """
    weighs = cells.take(cells.weight > 0)
    state = calibrator.apply_signatures(weighs.mean_score, weighs.signature, weighs.learned)
    return weighs.moved(state, bins)


def halves(cells: Cells) -> tuple[Cells, Cells]:
    """The fitting rows, and those that end the learning or choose."""
    return cells.of_role(Role.fit), cells.of_role(Role.early_stopping)


def _no_choice(_: Settings) -> tuple[Setting, ...]:
    return ((),)


@dataclass(frozen=True)
class Method:
    """A method other than the trees.

    Attributes
    ----------
    name : str
        In configurations, models and summaries.
    label : str
        On pages.
    learn : callable
        The calibrator from cells with the roles ``fit`` and ``early_stopping``, and settings.
    from_dict : callable
        The calibrator from its plain JSON form, which is not trusted.
    swept : tuple of Setting
        What a comparison with the paper's sweep chooses among.
    own : callable
        What a comparison without a sweep chooses among, from the settings of the configuration.
    by_grid : bool
        Whether it is fitted anew for every grid m, and chosen by validation MC error instead of loss.
    """

    name: str
    label: str
    learn: Callable[[Cells, Settings], SignatureCalibrator]
    from_dict: Callable[[Mapping[str, Any]], FittedBaseline]
    swept: tuple[Setting, ...] = ((),)
    own: Callable[[Settings], tuple[Setting, ...]] = _no_choice
    by_grid: bool = False


def chosen(settings: Settings, *names: str) -> dict[str, Any]:
    """The settings of these names that are there."""
    return {name: settings[name] for name in names if name in settings}

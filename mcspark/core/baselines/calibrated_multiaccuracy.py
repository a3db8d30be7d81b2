"""Calibrated multiaccuracy: multiaccuracy first, then isotonic regression on its score.

The pair is what "Loss minimization through the lens of outcome indistinguishability" (Gopalan, Hu, Kim,
Reingold and Wieder 2023) calls calibrated multiaccuracy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcspark.core.baselines import multiaccuracy
from mcspark.core.baselines.method import Method, Settings, calibrated_cells
from mcspark.core.baselines.multiaccuracy import MultiaccuracyFit
from mcspark.core.baselines.recalibration import IsotonicFit, fit_isotonic
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.model.additive import BoolArray


@dataclass(frozen=True, eq=False)
class CalibratedFit:
    """A multiaccurate score, and the map of it that everybody gets.

    Parameters
    ----------
    first : MultiaccuracyFit
    then : IsotonicFit
        Of the score that ``first`` gives.
    """

    first: MultiaccuracyFit
    then: IsotonicFit

    def __post_init__(self) -> None:
        if len(self.then.value) != 1 or self.then.n_groups != self.n_groups:
            raise ValueError("the second map must be one for everybody, and about the groups of the first")

    @property
    def n_groups(self) -> int:
        """Number of groups that it is about."""
        return self.first.n_groups

    def apply_signatures(
        self, score: FloatArray, signature: IntArray, membership_table: BoolArray
    ) -> FloatArray:
        """Calibrated scores (N,) of scores (N,); ``signature`` (N,) is a row of ``membership_table``."""
        state = self.first.apply_signatures(score, signature, membership_table)
        return self.then.apply_signatures(state, signature, membership_table)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {"first": self.first.to_dict(), "then": self.then.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> CalibratedFit:
        """Inverse of :meth:`to_dict`; ValueError on anything that is no such fit."""
        if not isinstance(plain, Mapping) or set(plain) != {"first", "then"}:
            raise ValueError("a calibrated multiaccuracy is stored as a mapping of first and then")
        return cls(MultiaccuracyFit.from_dict(plain["first"]), IsotonicFit.from_dict(plain["then"]))


def calibrated(first: MultiaccuracyFit, cells: Cells) -> CalibratedFit:
    """Follow a multiaccurate fit by the isotonic regression on its score.

    Parameters
    ----------
    first : MultiaccuracyFit
    cells : Cells
        To learn the map from, all of them; the rows of a cell stand at its mean score.
    """
    return CalibratedFit(first, fit_isotonic(calibrated_cells(first, cells, cells.bins)))


def _learn(cells: Cells, settings: Settings) -> CalibratedFit:
    first = multiaccuracy.METHOD.learn(cells, settings)
    assert isinstance(first, MultiaccuracyFit)
    return calibrated(first, cells.of_role(Role.fit, Role.early_stopping))


METHOD = Method(
    "calibrated_multiaccuracy", "multiaccurate, then isotonic", _learn, CalibratedFit.from_dict,
    swept=multiaccuracy.METHOD.swept, own=multiaccuracy.METHOD.own,
)  # fmt: skip

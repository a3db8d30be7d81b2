"""Simulations drawn part by part: what some atoms add to each draw, and what the sums of all parts show.

Where the atoms are in many places, each place draws the rows of its own, seeded by which atoms they are. The
draws are whole quanta, so that their sums are the same in any order and however the atoms are dealt out. They
are other draws than those of :mod:`mcspark.core.metrics.group_noise`, of the same chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mcspark.core.cells.atoms import Atoms
from mcspark.core.cells.levels import FloatArray
from mcspark.core.metrics.group_noise import AtomNoise
from mcspark.core.metrics.intervals import Resampling, SampleErrors
from mcspark.core.metrics.label_noise import BinaryLabels, FractionalLabels
from mcspark.core.metrics.noise import LabelErrors

_CHUNK = 1_000_000
"""Numbers of draws, or of memberships, that are held at once."""


@dataclass(frozen=True)
class Part:
    """Some atoms of one base level.

    Parameters
    ----------
    atoms : Atoms
    variance : ndarray, shape (A,), optional
        Of Σw·y of each atom, where labels are neither 0 nor 1.
    """

    atoms: Atoms
    variance: FloatArray | None = None


class Simulation(Protocol):
    """Draws of sums over groups and base levels, and the errors that they show."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of quantities, of draws, and of groups."""

    def draw(self, rng: np.random.Generator, part: Part) -> FloatArray:
        """What these atoms add to each draw, in quanta; of :attr:`shape`."""

    def errors(self, sums: FloatArray) -> FloatArray:
        """Errors of some draws, from their sums in quanta, shape (quantities, D, groups, base).

        Returns
        -------
        ndarray, shape (D, E)
        """


@dataclass(frozen=True)
class DrawnLabels:
    """Labels under perfect calibration, and after them those at hand.

    Parameters
    ----------
    wanted : LabelErrors
        Of the judged groups.
    judged : ndarray of bool, shape (G,)
    unit : float
        Weight of one quantum.
    draws : int
    """

    wanted: LabelErrors
    judged: NDArray[np.bool_]
    unit: float
    draws: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """See :class:`Simulation`."""
        return 1, self.draws + 1, int(self.judged.sum())

    def draw(self, rng: np.random.Generator, part: Part) -> FloatArray:
        """See :class:`Simulation`."""
        atoms = part.atoms
        noise: BinaryLabels | FractionalLabels = (
            BinaryLabels.of(atoms, self.unit)
            if part.variance is None
            else FractionalLabels.of(atoms, self.unit, part.variance)
        )
        member = atoms.cells.membership[:, self.judged]
        drawn = _sums(rng, noise, self.draws, atoms, member, 1.0)
        at_hand = noise.observed @ member[atoms.cells.signature].astype(np.float64)
        return np.concatenate([drawn, at_hand[None, None]], axis=1)

    def errors(self, sums: FloatArray) -> FloatArray:
        """See :class:`Simulation`."""
        return self.wanted(sums[0])


@dataclass(frozen=True)
class DrawnSamples:
    """Poisson bootstrap samples; parameters as of :class:`DrawnLabels`."""

    wanted: SampleErrors
    judged: NDArray[np.bool_]
    unit: float
    draws: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """See :class:`Simulation`."""
        return 2, self.draws, int(self.judged.sum()) + 1

    def draw(self, rng: np.random.Generator, part: Part) -> FloatArray:
        """See :class:`Simulation`."""
        atoms = part.atoms
        member = atoms.cells.membership[:, self.judged]
        everyone = np.ones((len(member), 1), dtype=np.bool_)
        return _sums(rng, Resampling(atoms), self.draws, atoms, np.hstack([member, everyone]), self.unit)

    def errors(self, sums: FloatArray) -> FloatArray:
        """See :class:`Simulation`."""
        return self.wanted(sums * self.unit)


def _sums(
    rng: np.random.Generator,
    noise: AtomNoise,
    size: int,
    atoms: Atoms,
    member: NDArray[np.bool_],
    unit: float,
) -> FloatArray:
    """Draws of the atoms' own rows summed over each group, in whole quanta; shape (V, size, G)."""
    quantities = len(noise.covariance)
    out = np.zeros((quantities, size, member.shape[1]))
    step = max(1, _CHUNK // max(quantities * size, member.shape[1]))
    for start in range(0, len(atoms), step):
        at = np.arange(start, min(start + step, len(atoms)))
        inside = member[atoms.cells.signature[at]].astype(np.float64)
        out += np.rint(noise.draw(rng, size, at) / unit) @ inside
    return out

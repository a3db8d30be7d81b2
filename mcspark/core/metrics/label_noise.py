"""Labels drawn anew under perfect calibration: the sum Σw·y of each atom, in whole quanta of weight.

Whole numbers add up exactly in any order, so that a draw that equals the labels at hand is a tie.

Labels of 0 and 1 are Bernoulli variables with the mean score of their atom. How much weight the positive
ones carry is known by the number of rows, Σw and Σw² alone. Equal weights need no more. Others are taken as
independent gamma variables of this mean and variance: then k of n rows hold a share of the weight that is
Beta(a·k, a·(n − k)). Mean and variance are those of the rows, and so is the chance that no label is positive.

Labels within [0, 1] are normal, with the variance of the data; see :func:`fractional_variance`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcspark.core.cells.atoms import Atoms
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.derived import ceiling, largest
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.cells.summed import Summed

QUANTA = 50
"""The total weight is no more than 2 to this power quanta: sums of them are exact in doubles."""
PRIOR_ROWS = 8.0
"""Information (Σf·(1 − f)) that labels within [0, 1] must bring before their own variance counts for half."""
_EXACT_ROWS = 4
_SAME, _WHOLE = 1e-9, 1e-6
_LEAST_EVENNESS = 1e-3


def quantum(cells: Summed) -> float:
    """Weight of one quantum, a power of two."""
    return float(2.0 ** (np.ceil(np.log2(cells.total("weight"))) - QUANTA))


def _binomial(rng: np.random.Generator, trials: IntArray, chance: FloatArray, size: int) -> FloatArray:
    """Binomial counts, shape (size, len(trials)); a few trials are cheaper one by one."""
    out = np.zeros((size, len(trials)))
    for rows in range(1, _EXACT_ROWS + 1):
        few = np.flatnonzero(trials == rows)
        if len(few):
            count: FloatArray = np.zeros((size, len(few)))
            for _ in range(rows):
                count += rng.random((size, len(few))) < chance[few]
            out[:, few] = count
    many = np.flatnonzero(trials > _EXACT_ROWS)
    if len(many):
        out[:, many] = rng.binomial(trials[many], chance[many], (size, len(many)))
    return out


@dataclass
class BinaryLabels:
    """Labels of 0 and 1; an :class:`~mcspark.core.metrics.group_noise.AtomNoise`.

    Attributes
    ----------
    observed : ndarray, shape (A,)
        Σw·y of the labels at hand, as a draw has it.
    chance : ndarray, shape (A,)
        Probability of a positive label.
    rows : ndarray of int, shape (A,)
    each, every : ndarray, shape (A,)
        Weight of a row, or their mean, and of all rows, in quanta.
    evenness : ndarray, shape (A,)
        The parameter ``a`` of the Beta distribution; infinite where weights are equal.
    mean, covariance, information, step
        See :class:`~mcspark.core.metrics.group_noise.AtomNoise`.
    """

    observed: FloatArray
    chance: FloatArray
    rows: IntArray
    each: FloatArray
    every: FloatArray
    evenness: FloatArray
    mean: FloatArray
    covariance: FloatArray
    information: FloatArray
    step: float

    @classmethod
    def of(cls, atoms: Atoms, unit: float) -> BinaryLabels:
        """For these atoms, with quanta of weight ``unit``."""
        cells = atoms.cells
        # A whole number of effective rows means equal weights, beside rows without weight if there are more.
        equal = atoms.rows == np.rint(atoms.rows)
        rows = np.where(equal, atoms.rows, np.maximum(cells.n, 2))
        spread = np.where(equal, 0.0, np.maximum(rows / atoms.rows - 1, _SAME))
        evenness = np.divide(rows - 1, spread, out=np.full(len(atoms), np.inf), where=~equal)
        each = np.rint(cells.weight / rows / unit)
        every = np.where(equal, rows * each, np.rint(cells.weight / unit))
        positive = cells.label / cells.weight * rows
        whole = np.rint(positive)
        counted = (equal & (np.abs(positive - whole) <= _WHOLE * rows)) | (positive <= _SAME * rows)
        observed = np.where(counted, whole * each, np.rint(cells.label / unit))
        observed = np.where(positive >= (1 - _SAME) * rows, every, observed)
        chance = np.clip(cells.score / cells.weight, 0.0, 1.0)
        variance = cells.weight_sq * (cells.score - cells.score_sq) / cells.weight / unit**2
        return cls(
            observed=observed,
            chance=chance,
            rows=rows.astype(np.int64),
            each=each,
            every=every,
            evenness=np.maximum((evenness - 1) / rows, _LEAST_EVENNESS),
            mean=(chance * every)[None],
            covariance=np.maximum(variance, 0.0)[None, None],
            information=atoms.rows * chance * (1 - chance),
            step=_lattice(each) if equal.all() else 1.0,
        )

    def draw(self, rng: np.random.Generator, size: int, at: IntArray) -> FloatArray:
        """Values of shape (1, size, len(at))."""
        count = _binomial(rng, self.rows[at], self.chance[at], size)
        out = count * self.each[at]
        uneven = np.isfinite(self.evenness[at])
        if uneven.any():
            rows, every = self.rows[at], self.every[at]
            draw, atom = np.nonzero(uneven & (count > 0))
            some, of, a = count[draw, atom], rows[atom], self.evenness[at][atom]
            part = some < of
            share = np.ones(len(some))
            share[part] = rng.beta(some[part] * a[part], (of[part] - some[part]) * a[part])
            out[draw, atom] = np.rint(share * every[atom])
        return out[None]


def _lattice(weight: FloatArray) -> float:
    """The least weight if all are its multiples: the step that sums of them move by; else one quantum."""
    least = max(float(weight.min(initial=np.inf)), 1.0)
    ratio = weight / least
    return least if np.abs(ratio - np.rint(ratio)).max(initial=0.0) < _SAME else 1.0


@dataclass
class FractionalLabels:
    """Labels within [0, 1]; an :class:`~mcspark.core.metrics.group_noise.AtomNoise`.

    Attributes
    ----------
    observed, mean, covariance, information, step
        As in :class:`BinaryLabels`; sums of any size are normal.
    """

    observed: FloatArray
    mean: FloatArray
    covariance: FloatArray
    information: FloatArray
    step: float = 1.0

    @classmethod
    def of(cls, atoms: Atoms, unit: float, variance: FloatArray) -> FractionalLabels:
        """For these atoms with this variance of Σw·y, shape (A,)."""
        cells = atoms.cells
        return cls(
            observed=np.rint(cells.label / unit),
            mean=(cells.score / unit)[None],
            covariance=(variance / unit**2)[None, None],
            information=np.full(len(atoms), 1e9),
        )

    def draw(self, rng: np.random.Generator, size: int, at: IntArray) -> FloatArray:
        """Values of shape (1, size, len(at))."""
        normal = rng.standard_normal((size, len(at))) * np.sqrt(self.covariance[0, 0, at])
        return np.asarray(np.rint(self.mean[:, None, at] + normal))


def fractional_variance(cells: Cells, measured: FloatArray) -> FloatArray:
    """Variance of Σw·y of each cell; shape (C,).

    A handful of rows tells little about a variance, and rows that are rarely anything but 0 even less. So
    the variance of a group is drawn towards that of all rows, and theirs towards the largest there can be,
    that of labels of 0 and 1, by as much as :data:`PRIOR_ROWS` of information weigh against their own.

    Parameters
    ----------
    cells : Cells
    measured : ndarray, shape (C,)
        Mean squared residual of the rows of each cell, of
        :func:`mcspark.core.metrics.noise.residual_variance`.
    """
    most, variance = largest(cells), cells.weight_sq * measured
    n_signatures = len(cells.membership)
    by_signature = [
        np.bincount(cells.signature, weights=v, minlength=n_signatures)
        for v in (cells.weight, cells.weight_sq, most)
    ]
    member = cells.membership.astype(np.float64)
    weight, square, known = (v @ member for v in by_signature)
    all_ceiling = ceiling(cells).sum()
    return Prior.of(
        (weight, square, known), (cells.weight.sum(), cells.weight_sq.sum(), most.sum()),
        variance.sum() / all_ceiling if all_ceiling > 0 else 0.0,
    ).variance(cells, measured)  # fmt: skip


@dataclass(frozen=True)
class Prior:
    """What a variance that few rows tell is drawn towards; see :func:`fractional_variance`.

    Attributes
    ----------
    trust : ndarray, shape (G,)
        By how much, in each group.
    ratio : float
        The variance of all rows, as a part of the largest there can be.
    """

    trust: FloatArray
    ratio: float

    @classmethod
    def of(
        cls,
        by_group: tuple[FloatArray, FloatArray, FloatArray],
        total: tuple[float, float, float],
        part: float,
    ) -> Prior:
        """From Σw, Σw² and Σw·f·(1 − f) by group and of all rows, and what part of the ceiling they reach."""
        weight, square, known = by_group
        own = float(_prior_share(total[0] * total[2], total[1]))
        return cls(_prior_share(weight * known, square), own + (1 - own) * part)

    def variance(self, cells: Cells, measured: FloatArray) -> FloatArray:
        """Variance of Σw·y of each cell with this mean squared residual; shape (C,)."""
        towards = np.where(cells.membership, self.trust, 0.0).max(axis=1, initial=0.0)[cells.signature]
        variance = cells.weight_sq * measured
        return np.asarray((1 - towards) * variance + towards * self.ratio * ceiling(cells))


def _prior_share(above: FloatArray | float, below: FloatArray | float) -> FloatArray:
    """How much the prior counts beside rows of information ``above / below``."""
    information = np.divide(above, below, out=np.zeros_like(np.asarray(above)), where=np.asarray(below) > 0)
    return np.asarray(PRIOR_ROWS / (PRIOR_ROWS + information))

"""Intervals for the multicalibration error and the worst-group smECE, from cells.

Both figures sum absolute values, so chance pushes them up: a bootstrap pushes twice, and the interval
between its quantiles would lie above the truth. Instead the systematic residual is taken to be ``t`` times
the estimated one, shrunk where chance explains it, and the noise of a Poisson bootstrap is added. The
interval spans the errors of those ``t`` under which the figure at hand is no surprise, from t = 0, which is
no error at all, upwards; so it may end below the figure itself. How a residual is spread over the levels
decides how much of it chance can hide, so several guesses of that are tried, and the widest interval counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mcspark.core.cells.atoms import Atoms, roll_up
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.derived import scatter
from mcspark.core.cells.levels import FloatArray, IntArray, level_value
from mcspark.core.cells.summed import Summed
from mcspark.core.metrics.calibration_error import level_errors, too_small_groups
from mcspark.core.metrics.group_noise import draw_group_sums
from mcspark.core.metrics.smooth_ece import group_smooth_ece

STRENGTHS = np.array([0, 0.3, 0.6, 0.85, 1, 1.2, 1.5, 2, 3.5, 7, 14])
"""Multiples ``t`` of the estimated systematic residual that are tried."""
LEAST_SHARE = 0.1
"""However well chance explains a residual, this share of it is kept, so that ``t`` can reach any error."""
BROAD = 10
"""Levels within which a smooth systematic residual is taken as constant."""
BANDWIDTHS = 0.005 * 1.35 ** np.arange(18)
"""Bandwidths between which the fixed point of smECE is interpolated."""


@dataclass(frozen=True)
class Interval:
    """An estimate and its interval; None where no group is large enough."""

    estimate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Intervals:
    """Intervals of the multicalibration error by grid, and of the worst-group smECE."""

    mc_error: dict[int, Interval]
    smece: Interval


def bootstrap_intervals(
    cells: Cells,
    levels: Sequence[int],
    draws: int = 200,
    seed: int = 0,
    *,
    level: float = 0.9,
    min_rows: int = 1,
) -> Intervals:
    """Intervals that hold the error of the population with a probability of about ``level``.

    Parameters
    ----------
    cells : Cells
        Of the rows to judge, all roles alike.
    levels : sequence of int
        Grids; each must divide ``cells.bins.base``.
    draws, seed : int
        Number of bootstrap samples, and where their random numbers start.
    level : float, range (0, 1)
        Confidence level.
    min_rows : int
        Groups with fewer rows are left out of the maxima.

    Notes
    -----
    For smECE, scores are known to within ``1 / cells.bins.base`` here; a base of 100 or more is advised.
    """
    judged = ~too_small_groups(cells, min_rows)
    if not judged.any():
        return no_intervals(levels)
    atoms, rng = Atoms.of(cells), np.random.default_rng(seed)
    tables = Tables.of(atoms, judged)
    errors = SampleErrors.of(tables, levels)
    resample = Resampling(atoms)
    # All rows are one more group, the last: its sum tells how much a sample weighs.
    everyone = np.ones((len(cells.membership), 1))
    member = np.hstack([cells.membership[:, judged].astype(np.float64), everyone])
    drawn = [errors(draw_group_sums(rng, size, atoms, resample, member)) for size in atoms.blocks(draws)]
    return errors.intervals(cells, np.concatenate(drawn), level=level, min_rows=min_rows)


def no_intervals(levels: Sequence[int]) -> Intervals:
    """What there is to say where no group is large enough."""
    nothing = Interval(None, None, None)
    return Intervals(dict.fromkeys(levels, nothing), nothing)


@dataclass(frozen=True)
class SampleErrors:
    """The errors of samples at every shape and strength, from their noise in the judged groups."""

    tables: Tables
    levels: tuple[int, ...]
    figures: tuple[_Figure, ...]

    @classmethod
    def of(cls, tables: Tables, levels: Sequence[int]) -> SampleErrors:
        """For the errors on these grids, and smECE."""
        figures: list[_Figure] = [_GridError(tables, m) for m in levels]
        return cls(tables, tuple(levels), (*figures, _SmoothError(tables)))

    def __call__(self, drawn: FloatArray) -> FloatArray:
        """Errors of each sample, shape (D, all shapes and strengths of all figures).

        Parameters
        ----------
        drawn : ndarray, shape (2, D, G + 1, base)
            What samples add to Σw and Σw·(f − y) of each group and, last, of all rows.
        """
        weight, residual = self.tables.scaled(drawn)
        found = [_at_strengths(figure, weight, residual) for figure in self.figures]
        return np.concatenate([errors.reshape(len(weight), -1) for errors in found], axis=1)

    def intervals(
        self, cells: Summed, drawn: FloatArray, *, level: float = 0.9, min_rows: int = 1
    ) -> Intervals:
        """The intervals, from the errors of all samples."""
        none = np.zeros((1, *self.tables.weight.shape))
        sizes = [figure.shapes * len(STRENGTHS) for figure in self.figures]
        parts = np.split(drawn, np.cumsum(sizes)[:-1], axis=1)
        ends = [
            _invert(figure, none, part.reshape(len(part), figure.shapes, -1), level)
            for figure, part in zip(self.figures, parts, strict=True)
        ]
        grids = {
            m: Interval(level_errors(cells, m, min_rows).mc_error, *found)
            for m, found in zip(self.levels, ends[:-1], strict=True)
        }
        return Intervals(grids, Interval(group_smooth_ece(cells, min_rows).worst, *ends[-1]))


class Resampling:
    """What Poisson bootstrap samples add to Σw and Σw·(f − y) of each atom.

    An atom of one row is drawn as it is; the rows of a larger one are drawn as equally heavy ones with
    the atom's mean, and their spread about the mean as a normal variable. An
    :class:`~mcspark.core.metrics.group_noise.AtomNoise`.
    """

    def __init__(self, atoms: Atoms) -> None:
        cells = atoms.cells
        self._atoms, self._weight, self._residual = atoms, cells.weight, cells.score - cells.label
        square = cells.score_sq - 2 * cells.score_label + cells.label_sq
        within = np.maximum(square / cells.weight - (self._residual / cells.weight) ** 2, 0.0)
        self._single = cells.n <= 1
        self._spread = np.where(self._single, 0.0, np.sqrt(cells.weight_sq * within))
        rows = np.where(self._single, 1.0, atoms.rows)
        self.information, self.step = rows / 4, 0.0
        self.mean = np.zeros((2, len(atoms)))
        self.covariance = np.array([
            [self._weight**2 / rows, self._weight * self._residual / rows],
            [self._weight * self._residual / rows, self._residual**2 / rows + self._spread**2],
        ])  # fmt: skip

    def draw(self, rng: np.random.Generator, size: int, at: IntArray) -> FloatArray:
        """Noise of both quantities of these atoms before the scaling, shape (2, size, len(at))."""
        share = np.empty((size, len(at)))
        alone, together = np.flatnonzero(self._single[at]), np.flatnonzero(~self._single[at])
        share[:, alone] = _POISSON[rng.integers(0, len(_POISSON), (size, len(alone)), dtype=np.uint16)]
        rows = self._atoms.rows[at[together]]
        share[:, together] = rng.poisson(rows, (size, len(together))) / rows
        share -= 1
        moved = share * self._residual[at]
        moved[:, together] += rng.standard_normal((size, len(together))) * self._spread[at[together]]
        return np.stack([share * self._weight[at], moved])


def _poisson_table() -> FloatArray:
    """Poisson(1) counts, each as often among 2¹⁶ entries as it is likely."""
    likely = np.exp(-1.0) / np.cumprod(np.concatenate([[1.0], np.arange(1.0, 9.0)]))
    return np.searchsorted(np.cumsum(likely), (np.arange(2**16) + 0.5) / 2**16).astype(np.float64)


_POISSON = _poisson_table()


@dataclass(frozen=True)
class Tables:
    """Sums of the judged groups by base level, each of shape (G, base), and the total weight."""

    weight: FloatArray
    score: FloatArray
    residual: FloatArray
    variance: FloatArray
    total: float

    @classmethod
    def of(cls, atoms: Atoms, judged: NDArray[np.bool_]) -> Tables:
        """From the atoms themselves."""
        cells = atoms.cells
        values = (cells.weight, cells.score, cells.score - cells.label, scatter(cells))
        sums = atoms.group_sums(np.stack(values))[:, judged]
        return cls(sums[0], sums[1], sums[2], sums[3], float(cells.weight.sum()))

    @classmethod
    def of_sums(cls, cells: Summed, judged: NDArray[np.bool_]) -> Tables:
        """From sums over the atoms."""
        weight, score, residual, variance = (
            cells.group_sums(name, cells.bins.base)[judged]
            for name in ("weight", "score", "residual", "scatter")
        )
        return cls(weight, score, residual, variance, cells.total("weight"))

    def scaled(self, drawn: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Noise of Σw and Σw·(f − y), each of shape (D, G, base), of samples scaled to the same weight."""
        sampled = self.total + drawn[0, :, -1].sum(axis=1)
        factor = (self.total / np.where(sampled > 0, sampled, np.inf))[:, None, None]
        weight, residual = (
            (have + noise[:, :-1]) * factor - have
            for have, noise in zip((self.weight, self.residual), drawn, strict=True)
        )
        return weight, residual


def _systematic(residual: FloatArray, variance: FloatArray) -> FloatArray:
    """The residuals, less what chance explains of their squares."""
    explained = _ratio(variance, residual**2)
    return np.asarray(residual * np.sqrt(np.maximum(1 - explained, LEAST_SHARE**2)))


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Quotient; 0 where the divisor is not positive."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


class _Figure(Protocol):
    """A figure of merit as a function of the systematic residual and of noise added to it."""

    shapes: int

    def prepare(self, weight: FloatArray, residual: FloatArray) -> None:
        """Take in noise, shape (D, G, base), of Σw and Σw·(f − y)."""

    def at(self, shape: int, strength: float) -> FloatArray:
        """The figure of each draw, shape (D,). The last shape at strength 1 is the residual as observed."""


def _at_strengths(figure: _Figure, weight: FloatArray, residual: FloatArray) -> FloatArray:
    """The figure of each draw, shape and strength; shape (D, shapes, strengths)."""
    figure.prepare(weight, residual)
    return np.stack(
        [np.stack([figure.at(k, t) for t in STRENGTHS], axis=1) for k in range(figure.shapes)], axis=1
    )


def _invert(figure: _Figure, none: FloatArray, simulated: FloatArray, level: float) -> tuple[float, float]:
    """Least and largest error of all shapes and strengths that put the estimate between outer quantiles."""
    truths = _at_strengths(figure, none, none)[0]
    estimate = float(figure.at(figure.shapes - 1, 1.0)[0])
    quantiles = np.quantile(simulated, [(1 - level) / 2, (1 + level) / 2], axis=0)
    ends = []
    for truth, low, high in zip(truths, *quantiles, strict=True):
        # The quantiles grow with the strength, but for the chance of the draws.
        weakest = np.interp(estimate, np.maximum.accumulate(high), STRENGTHS)
        strongest = np.interp(estimate, np.maximum.accumulate(low), STRENGTHS)
        ends.append(np.interp([weakest, max(weakest, strongest)], STRENGTHS, truth))
    return float(np.min(ends)), float(np.max(ends))


def _smooth_shape(residual: FloatArray, variance: FloatArray, weight: FloatArray) -> FloatArray:
    """Systematic residuals as if their mean were the same within each of the broad levels."""
    n_levels = residual.shape[-1]
    broad = math.gcd(n_levels, BROAD)
    mean = _ratio(_systematic(roll_up(residual, broad), roll_up(variance, broad)), roll_up(weight, broad))
    return np.repeat(mean, n_levels // broad, axis=-1) * weight


class _GridError:
    """Multicalibration error on one grid; chance is removed level by level, by broad levels, or not."""

    shapes = 3

    def __init__(self, tables: Tables, m: int) -> None:
        self.m, self.total = m, tables.total
        value = np.repeat(level_value(np.arange(m), m), tables.weight.shape[1] // m)
        offset = value * tables.weight - tables.score
        self.mean_offset = _ratio(offset, tables.weight)
        gap, chance = roll_up(offset + tables.residual, m), roll_up(tables.variance, m)
        smooth = _smooth_shape(gap, chance, roll_up(tables.weight, m))
        self.gaps = (_systematic(gap, chance), smooth, gap)

    def prepare(self, weight: FloatArray, residual: FloatArray) -> None:
        self.noise = roll_up(residual + weight * self.mean_offset, self.m)

    def at(self, shape: int, strength: float) -> FloatArray:
        gap = np.abs(self.noise + strength * self.gaps[shape])
        return np.asarray(gap.sum(axis=2).max(axis=1) / self.total)


class _SmoothError:
    """Worst-group smECE, with scores placed at their mean in each group and base level."""

    shapes = 2

    def __init__(self, tables: Tables) -> None:
        base = tables.weight.shape[1]
        self.upper = np.clip(_ratio(tables.score, tables.weight) * base - np.arange(base), 0.0, 1.0)
        self.weight = tables.weight
        self.kernels = _kernels(base)
        smooth = _smooth_shape(tables.residual, tables.variance, tables.weight)
        self.curves = (self._smooth(smooth), self._smooth(tables.residual))

    def prepare(self, weight: FloatArray, residual: FloatArray) -> None:
        masses = self._split(self.weight + weight)
        # A mass at the very end is reflected once, and counts half: see the conventions of smooth_ece.
        total = masses.sum(axis=-1) - (masses[..., 0] + masses[..., -1]) / 2
        self.scale = _ratio(np.ones_like(total), total)
        self.noise = self._smooth(residual)

    def at(self, shape: int, strength: float) -> FloatArray:
        curves = zip(self.noise, self.curves[shape], strict=True)
        error = [np.abs(noise + strength * curve).mean(axis=-1) * self.scale for noise, curve in curves]
        return np.asarray(_fixed_point(np.stack(error)).max(axis=1))

    def _smooth(self, value: FloatArray) -> list[FloatArray]:
        masses = self._split(value)
        return [masses @ kernel for kernel in self.kernels]

    def _split(self, value: FloatArray) -> FloatArray:
        upper = value * self.upper
        out = np.zeros((*value.shape[:-1], value.shape[-1] + 1))
        out[..., 1:] += upper
        out[..., :-1] += value - upper
        return out


@lru_cache(maxsize=4)
def _kernels(base: int) -> tuple[FloatArray, ...]:
    """Smoothing from the edges of the base levels to a mesh, at each bandwidth; mean 1 over the mesh."""
    edge = np.linspace(0, 1, base + 1)[:, None]
    kernels = []
    for sigma in BANDWIDTHS:
        points = 200 if sigma < 0.02 else 60  # at least one to a bandwidth
        mesh = (np.arange(points) + 0.5) / points
        distances = np.stack([mesh - edge, mesh + edge, 2 - mesh - edge])
        kernel = (np.exp(-((distances / sigma) ** 2) / 2) * (np.abs(distances) <= 0.5)).sum(axis=0)
        kernel /= kernel.mean(axis=1, keepdims=True)
        kernel[[0, -1]] /= 2
        kernels.append(kernel)
    return tuple(kernels)


def _fixed_point(error: FloatArray) -> FloatArray:
    """Where the error, shape (bandwidths, …) and falling, meets its bandwidth; shape (…)."""
    excess = error - BANDWIDTHS.reshape(-1, *[1] * (error.ndim - 1))
    after = np.argmax(excess <= 0, axis=0)[None]
    before = np.maximum(after - 1, 0)
    a, b = (np.take_along_axis(excess, at, 0)[0] for at in (before, after))
    low, high = (np.take_along_axis(error, at, 0)[0] for at in (before, after))
    part = np.divide(a, a - b, out=np.zeros_like(a), where=a > b)
    return np.asarray(low + np.where(after[0] > 0, part, 0.0) * (high - low))

"""The noise floor: the multicalibration error that a perfectly calibrated predictor would show.

With finitely many rows the mean label of a level set misses the score by chance, and the error, a sum of
absolute values, cannot cancel it. Here the labels are drawn anew under E[y | score, groups] = score, many
times, from the cells alone; scores, weights and groups stay as they are. The floor is the mean of the
errors so found, and the p-value says how often chance alone does as badly as the labels at hand. What the
discretized predictor owes to its rounding is the same in every draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcspark.core.cells.atoms import Atoms, roll_up
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import FloatArray, level_value
from mcspark.core.cells.summed import Summed
from mcspark.core.metrics.calibration_error import too_small_groups
from mcspark.core.metrics.group_noise import draw_group_sums
from mcspark.core.metrics.label_noise import BinaryLabels, FractionalLabels, fractional_variance, quantum

QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class NoiseFloor:
    """What chance alone does on the grid of ``m`` levels; None where no group is large enough.

    Attributes
    ----------
    m : int or None
        None for the multiaccuracy error of the score itself, which knows no grid.
    observed : float or None
        The error of the labels at hand.
    expected : float or None
        Its mean under perfect calibration: the noise floor.
    quantiles : dict of float to float
        Its quantiles under perfect calibration, at :data:`QUANTILES`; empty where there are none.
    p_value : float or None
        (1 + number of draws at least as large as observed) / (1 + draws).
    """

    m: int | None
    observed: float | None
    expected: float | None
    quantiles: dict[float, float]
    p_value: float | None


def noise_floor(
    cells: Cells,
    levels: Sequence[int],
    draws: int = 200,
    seed: int = 0,
    *,
    binary: bool | None = None,
    min_rows: int = 1,
) -> dict[int | None, NoiseFloor]:
    """Simulate perfect calibration; see :mod:`mcspark.core.metrics.label_noise` for how labels are drawn.

    Draws and the labels at hand go through the same sums of whole numbers, so that equal errors are equal.

    Parameters
    ----------
    cells : Cells
        Of the rows to judge, all roles alike.
    levels : sequence of int
        Grids; each must divide ``cells.bins.base``.
    draws, seed : int
        Number of simulations, and where their random numbers start.
    binary : bool, optional
        Whether every label is 0 or 1; found from the cells if absent.
    min_rows : int
        Groups with fewer rows are left out of the maximum.

    Returns
    -------
    dict of int to NoiseFloor
        By grid; under None, of the multiaccuracy error of the score itself.
    """
    judged = ~too_small_groups(cells, min_rows)
    if not judged.any():
        return no_floors(levels)
    binary = has_binary_labels(cells) if binary is None else binary
    atoms, rng, unit = Atoms.of(cells), np.random.default_rng(seed), quantum(cells)
    noise: BinaryLabels | FractionalLabels = (
        BinaryLabels.of(atoms, unit) if binary
        else FractionalLabels.of(
            atoms, unit, atoms.merge(fractional_variance(cells, residual_variance(cells, coarse_grid(cells))))
        )
    )  # fmt: skip
    member = cells.membership.astype(np.float64)
    errors = LabelErrors.of(cells, levels, judged, unit)
    observed = errors(atoms.group_sums(noise.observed[None])[:, judged])[0]
    blocks = [
        errors(draw_group_sums(rng, size, atoms, noise, member)[0][:, judged]) for size in atoms.blocks(draws)
    ]
    return errors.floors(observed, np.concatenate(blocks))


def no_floors(levels: Sequence[int]) -> dict[int | None, NoiseFloor]:
    """What there is to say where no group is large enough."""
    return {m: NoiseFloor(m, None, None, {}, None) for m in (*levels, None)}


@dataclass(frozen=True)
class LabelErrors:
    """The errors that labels show, from their sums over the judged groups and base levels.

    Attributes
    ----------
    grids : tuple of int or None
        None for the multiaccuracy error of the score itself.
    wanted : tuple of ndarray
        What the labels are held against: in each level its middle, and in all as one the score itself.
    total : float
        Weight of all rows, in quanta.
    """

    grids: tuple[int | None, ...]
    wanted: tuple[FloatArray, ...]
    total: float

    @classmethod
    def of(cls, cells: Summed, levels: Sequence[int], judged: NDArray[np.bool_], unit: float) -> LabelErrors:
        """For these rows, with quanta of weight ``unit``."""
        grids = (*levels, None)
        wanted = (
            cells.group_sums("score").sum(axis=1, keepdims=True) if m is None
            else level_value(np.arange(m), m) * cells.group_sums("weight", m)
            for m in grids
        )  # fmt: skip
        held = tuple(np.rint(value[judged] / unit) for value in wanted)
        return cls(grids, held, cells.total("weight") / unit)

    def __call__(self, labels: FloatArray) -> FloatArray:
        """Errors of draws of labels, shape (D, judged groups, base), by grid; shape (D, grids)."""
        found = [
            np.abs(wanted - roll_up(labels, m or 1)).sum(axis=2).max(axis=1) / self.total
            for m, wanted in zip(self.grids, self.wanted, strict=True)
        ]
        return np.stack(found, axis=1)

    def floors(self, observed: FloatArray, drawn: FloatArray) -> dict[int | None, NoiseFloor]:
        """What chance does, from the errors at hand, shape (grids,), and those of the draws."""
        return {m: _summary(m, float(observed[i]), drawn[:, i]) for i, m in enumerate(self.grids)}


def coarse_grid(cells: Summed) -> int:
    """Levels within which systematic error is taken as constant."""
    return 10 if cells.bins.base % 10 == 0 else 1


def has_binary_labels(cells: Cells) -> bool:
    """Whether all labels are 0 or 1, which is where Σw·y² equals Σw·y."""
    return not mixed_labels(cells).any()


def mixed_labels(cells: Cells) -> NDArray[np.bool_]:
    """Which cells hold labels that are neither 0 nor 1; shape (C,)."""
    return np.asarray(~(cells.label - cells.label_sq <= 1e-9 * cells.weight), dtype=np.bool_)


def residual_variance(cells: Cells, m: int) -> FloatArray:
    """Mean squared residual of the rows of each cell, cleared of systematic error; see :class:`Explained`."""
    member = cells.membership.astype(np.float64)
    by_signature = np.bincount(cells.signature, weights=cells.weight, minlength=len(member))
    return Explained.of(cells, member.T @ (member * by_signature[:, None]), m).rest(cells)


@dataclass(frozen=True)
class Explained:
    """What of f − y a linear model of the groups and of the levels of grid ``m`` explains.

    That is miscalibration, not chance, and is taken away from the squared residuals; the rest is scaled up
    for the degrees of freedom that the model used. It is taken cell by cell, so that groups may differ in
    their spread.

    Attributes
    ----------
    m : int
    coefficient : ndarray, shape (m + G,)
    freedom : float
        Factor of what is left.
    """

    m: int
    coefficient: FloatArray
    freedom: float

    @classmethod
    def of(cls, cells: Summed, joint: FloatArray, m: int) -> Explained:
        """Fit it; ``joint`` is the weight of the rows in each two groups, shape (G, G)."""
        cross = cells.group_sums("weight", m)
        gram = np.block([[np.diag(cells.level_sums("weight", m)), cross.T], [cross, joint]])
        moment = np.concatenate([cells.level_sums("residual", m), cells.group_sums("residual").sum(axis=1)])
        coefficient, _, rank, _ = np.linalg.lstsq(gram, moment, rcond=1e-10)
        rows = cells.total("weight") ** 2 / cells.total("weight_sq")  # effective, under unequal weights
        return cls(m, coefficient, float(rows / max(rows - rank, rows / 2)))

    def rest(self, cells: Cells) -> FloatArray:
        """Mean squared residual of the rows of each cell that is left; shape (C,)."""
        level = cells.bins.level_of_bin(self.m)[cells.bin]
        residual = cells.score - cells.label
        member = cells.membership.astype(np.float64)
        fitted = self.coefficient[level] + (member @ self.coefficient[self.m :])[cells.signature]
        square = cells.score_sq - 2 * cells.score_label + cells.label_sq
        rest = np.maximum(square - 2 * fitted * residual + fitted**2 * cells.weight, 0.0)
        return np.asarray(self.freedom * rest / np.where(cells.weight > 0, cells.weight, 1.0))


def _summary(m: int | None, observed: float, errors: FloatArray) -> NoiseFloor:
    return NoiseFloor(
        m=m,
        observed=observed,
        expected=float(errors.mean()),
        quantiles={q: float(v) for q, v in zip(QUANTILES, np.quantile(errors, QUANTILES), strict=True)},
        p_value=(1 + np.count_nonzero(errors >= observed)) / (1 + len(errors)),
    )

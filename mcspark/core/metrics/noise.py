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

from mcspark.core.cells.atoms import Atoms, roll_up
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import FloatArray, level_value
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
    grids: list[int | None] = [*levels, None]
    judged = ~too_small_groups(cells, min_rows)
    if not judged.any():
        return {m: NoiseFloor(m, None, None, {}, None) for m in grids}
    binary = has_binary_labels(cells) if binary is None else binary
    atoms, rng, unit = Atoms.of(cells), np.random.default_rng(seed), quantum(cells)
    noise: BinaryLabels | FractionalLabels = (
        BinaryLabels.of(atoms, unit) if binary
        else FractionalLabels.of(
            atoms, unit, atoms.merge(fractional_variance(cells, residual_variance(cells, _coarse(cells))))
        )
    )  # fmt: skip
    member = cells.membership.astype(np.float64)
    # What the labels are held against: in each level its middle, and in all as one the score itself.
    wanted = {
        m: np.rint(
            (cells.group_sums("score").sum(axis=1, keepdims=True) if m is None
             else level_value(np.arange(m), m) * cells.group_sums("weight", m))[judged] / unit
        )
        for m in grids
    }  # fmt: skip
    total = float(cells.weight.sum()) / unit

    def errors_of(labels: FloatArray) -> dict[int | None, FloatArray]:
        sums = labels[:, judged]
        return {m: np.abs(wanted[m] - roll_up(sums, m or 1)).sum(axis=2).max(axis=1) / total for m in grids}

    observed = errors_of(atoms.group_sums(noise.observed[None]))
    blocks = [errors_of(draw_group_sums(rng, size, atoms, noise, member)[0]) for size in atoms.blocks(draws)]
    return {
        m: _summary(m, float(observed[m][0]), np.concatenate([block[m] for block in blocks])) for m in grids
    }


def _coarse(cells: Cells) -> int:
    return 10 if cells.bins.base % 10 == 0 else 1


def has_binary_labels(cells: Cells) -> bool:
    """Whether all labels are 0 or 1, which is where Σw·y² equals Σw·y."""
    return bool(np.all(cells.label - cells.label_sq <= 1e-9 * cells.weight))


def residual_variance(cells: Cells, m: int) -> FloatArray:
    """Mean squared residual of the rows of each cell, cleared of systematic error; shape (C,).

    It is taken cell by cell, so that groups may differ in their spread. What a linear model of the groups
    and of the levels of grid ``m`` explains of f − y is miscalibration, not chance, and is taken away;
    the rest is scaled up for the degrees of freedom that the model used.
    """
    level = cells.bins.level_of_bin(m)[cells.bin]
    residual = cells.score - cells.label
    cross = cells.group_sums("weight", m)
    member = cells.membership.astype(np.float64)
    by_signature = np.bincount(cells.signature, weights=cells.weight, minlength=len(member))
    gram = np.block(
        [
            [np.diag(cells.level_sums("weight", m)), cross.T],
            [cross, member.T @ (member * by_signature[:, None])],
        ]
    )
    moment = np.concatenate(
        [
            np.bincount(level, weights=residual, minlength=m),
            cells.group_sums_of(residual).sum(axis=1),
        ]
    )
    coefficient, _, rank, _ = np.linalg.lstsq(gram, moment, rcond=1e-10)
    fitted = coefficient[level] + (member @ coefficient[m:])[cells.signature]
    square = cells.score_sq - 2 * cells.score_label + cells.label_sq
    rest = np.maximum(square - 2 * fitted * residual + fitted**2 * cells.weight, 0.0)
    rows = cells.weight.sum() ** 2 / cells.weight_sq.sum()  # effective, under unequal weights
    freedom = rows / max(rows - rank, rows / 2)
    return np.asarray(freedom * rest / np.where(cells.weight > 0, cells.weight, 1.0))


def _summary(m: int | None, observed: float, errors: FloatArray) -> NoiseFloor:
    return NoiseFloor(
        m=m,
        observed=observed,
        expected=float(errors.mean()),
        quantiles={q: float(v) for q, v in zip(QUANTILES, np.quantile(errors, QUANTILES), strict=True)},
        p_value=(1 + np.count_nonzero(errors >= observed)) / (1 + len(errors)),
    )

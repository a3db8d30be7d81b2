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

from mcspark.core.atoms import Atoms, roll_up
from mcspark.core.calibration_error import level_errors, too_small_groups
from mcspark.core.cells import Cells
from mcspark.core.group_noise import draw_group_sums
from mcspark.core.levels import FloatArray, IntArray, level_value

QUANTILES = (0.05, 0.5, 0.95)
_EXACT_ROWS = 4


@dataclass(frozen=True)
class NoiseFloor:
    """What chance alone does on the grid of ``m`` levels; None where no group is large enough.

    Attributes
    ----------
    m : int
    observed : float or None
        The multicalibration error of the labels at hand.
    expected : float or None
        Its mean under perfect calibration: the noise floor.
    quantiles : dict of float to float
        Its quantiles under perfect calibration, at :data:`QUANTILES`; empty where there are none.
    p_value : float or None
        (1 + number of draws at least as large as observed) / (1 + draws).
    """

    m: int
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
) -> dict[int, NoiseFloor]:
    """Simulate perfect calibration.

    Binary labels are drawn as Bernoulli variables with the mean score of their atom; unequal weights are
    answered by an effective number of rows, so that mean and variance are right. For labels within [0, 1]
    the variance is taken from the data, see :func:`residual_variance`, and signs are drawn.

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
        By grid.
    """
    observed = {m: level_errors(cells, m, min_rows).mc_error for m in levels}
    judged = ~too_small_groups(cells, min_rows)
    if not judged.any():
        return {m: NoiseFloor(m, None, None, {}, None) for m in levels}
    binary = has_binary_labels(cells) if binary is None else binary
    atoms, rng = Atoms.of(cells), np.random.default_rng(seed)
    noise, member = _Noise(atoms, cells, binary), cells.membership.astype(np.float64)
    rounding = {
        m: level_value(np.arange(m), m) * cells.group_sums("weight", m) - cells.group_sums("score", m)
        for m in levels
    }
    errors: dict[int, list[FloatArray]] = {m: [] for m in levels}
    for size in atoms.blocks(draws):
        chance = draw_group_sums(rng, size, atoms, noise, member)[0]
        for m in levels:
            gap = np.abs(rounding[m] - roll_up(chance, m)).sum(axis=2) / cells.weight.sum()
            errors[m].append(gap[:, judged].max(axis=1))
    return {m: _summary(m, observed[m], np.concatenate(errors[m])) for m in levels}


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


class _Noise:
    """Draws of Σw·(y − f) of each atom, of mean zero: scaled, centred binomial counts."""

    def __init__(self, atoms: Atoms, cells: Cells, binary: bool) -> None:
        if binary:
            variance = atoms.cells.weight_sq * (atoms.cells.score - atoms.cells.score_sq) / atoms.cells.weight
            self.chance = np.clip(atoms.cells.score / atoms.cells.weight, 0.0, 1.0)
        else:
            m = 10 if cells.bins.base % 10 == 0 else 1
            variance = atoms.merge(cells.weight_sq * residual_variance(cells, m))
            self.chance = np.full(len(atoms), 0.5)
        self.trials = np.maximum(np.rint(atoms.rows), 1).astype(np.int64)
        spread = self.trials * self.chance * (1 - self.chance)
        deviation = np.sqrt(np.maximum(variance, 0.0))
        self.scale = np.divide(deviation, np.sqrt(spread), out=np.zeros(len(atoms)), where=spread > 0)
        self.information = spread
        self.covariance = np.maximum(variance, 0.0)[None, None]

    def draw(self, rng: np.random.Generator, size: int, at: IntArray) -> FloatArray:
        """Values of shape (1, size, len(at))."""
        out = np.empty((1, size, len(at)))
        trials, chance, scale = self.trials[at], self.chance[at], self.scale[at]
        for rows in range(1, _EXACT_ROWS + 1):
            few = np.flatnonzero(trials == rows)
            count: FloatArray = np.zeros((size, len(few)))
            for _ in range(rows):
                count += rng.random((size, len(few)), dtype=np.float32) < chance[few].astype(np.float32)
            out[0][:, few] = (count - rows * chance[few]) * scale[few]
        many = np.flatnonzero(trials > _EXACT_ROWS)
        drawn = rng.binomial(trials[many], chance[many], (size, len(many)))
        out[0][:, many] = (drawn - trials[many] * chance[many]) * scale[many]
        return out


def _summary(m: int, observed: float | None, errors: FloatArray) -> NoiseFloor:
    if observed is None or not len(errors):
        return NoiseFloor(m, observed, None, {}, None)
    # Errors that differ in their last digits alone are equal.
    as_bad = np.count_nonzero(errors >= observed - 1e-12)
    return NoiseFloor(
        m=m,
        observed=observed,
        expected=float(errors.mean()),
        quantiles={q: float(v) for q, v in zip(QUANTILES, np.quantile(errors, QUANTILES), strict=True)},
        p_value=(1 + as_bad) / (1 + len(errors)),
    )

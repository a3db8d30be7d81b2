"""Multiaccuracy: the residual regressed on the groups, with an l1 penalty (paper, appendix on baselines).

Minimises ``1 / (2 Σw) Σ w (y - f - a - Σ_i b_i g_i)² + λ Σ_i |b_i|``, the objective of scikit-learn's Lasso
with weights. The groups are constant within a signature, so all penalties share one Gram matrix (G, G).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcspark.core.baselines.method import Method, Setting, Settings, halves
from mcspark.core.baselines.plain import read_float, read_floats
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.model.additive import BoolArray, checked_membership

PENALTIES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""The penalties of the paper's sweep."""

_SETTLED = 1e-10
"""Descent ends when no coefficient would change its own slope (in units of a residual) by more."""

_LARGEST = 1e6
"""No coefficient of a residual in [-1, 1] is larger, however collinear the groups."""


@dataclass(frozen=True, eq=False)
class MultiaccuracyFit:
    """``clip(f + intercept + Σ_i coefficient_i g_i, 0, 1)``.

    Parameters
    ----------
    penalty : float
        λ ≥ 0.
    intercept : float
    coefficient : ndarray, shape (G,)
    """

    penalty: float
    intercept: float
    coefficient: FloatArray

    @property
    def n_groups(self) -> int:
        """Number of groups that it is about."""
        return len(self.coefficient)

    def apply_signatures(
        self, score: FloatArray, signature: IntArray, membership_table: BoolArray
    ) -> FloatArray:
        """Calibrated scores (N,) of scores (N,); ``signature`` (N,) is a row of ``membership_table``."""
        member = checked_membership(membership_table, len(self.coefficient))
        shift = self.intercept + member @ self.coefficient
        return np.asarray(np.clip(score + shift[signature], 0.0, 1.0), dtype=np.float64)

    def loss(self, cells: Cells) -> float:
        """Mean squared loss on cells, before clipping; NaN without weight."""
        total = cells.weight.sum()
        if total <= 0:
            return float("nan")
        shift = (self.intercept + cells.membership @ self.coefficient)[cells.signature]
        square = cells.score_sq - 2 * cells.score_label + cells.label_sq
        square = square - 2 * shift * (cells.label - cells.score) + shift * shift * cells.weight
        return float(square.sum() / total)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "penalty": self.penalty,
            "intercept": self.intercept,
            "coefficient": self.coefficient.tolist(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> MultiaccuracyFit:
        """Inverse of :meth:`to_dict`; ValueError on anything that is no such fit."""
        return cls(
            read_float(plain, "penalty", 0.0, _LARGEST),
            read_float(plain, "intercept", -_LARGEST, _LARGEST),
            read_floats(plain, "coefficient", (None,), -_LARGEST, _LARGEST),
        )


def fit_multiaccuracy(
    cells_fit: Cells, cells_stop: Cells, penalties: Sequence[float] = PENALTIES
) -> MultiaccuracyFit:
    """Fit every penalty on ``cells_fit`` and keep the one of the lowest loss on ``cells_stop``.

    Without weight in ``cells_stop`` the largest penalty is kept.

    Parameters
    ----------
    cells_fit, cells_stop : Cells
    penalties : sequence of float
        λ ≥ 0, at least one.
    """
    # From the largest penalty: of equally good ones the simplest wins.
    path = sorted(multiaccuracy_path(cells_fit, penalties), key=lambda fit: -fit.penalty)
    losses = [fit.loss(cells_stop) for fit in path]
    return path[0] if np.isnan(losses[0]) else path[int(np.argmin(losses))]


def multiaccuracy_path(
    cells_fit: Cells, penalties: Sequence[float] = PENALTIES
) -> tuple[MultiaccuracyFit, ...]:
    """One fit a penalty, in the order given, all from one Gram matrix."""
    if not penalties or not all(np.isfinite(penalty) and penalty >= 0 for penalty in penalties):
        raise ValueError(f"penalties must be one or more finite numbers of at least 0, got {list(penalties)}")
    n_signatures, n_groups = cells_fit.membership.shape
    total = cells_fit.weight.sum()
    if total <= 0:
        return tuple(MultiaccuracyFit(penalty, 0.0, np.zeros(n_groups)) for penalty in penalties)
    residual = cells_fit.label - cells_fit.score
    weight, target = (
        np.bincount(cells_fit.signature, weights=value, minlength=n_signatures) / total
        for value in (cells_fit.weight, residual)
    )
    design = cells_fit.membership.astype(np.float64)
    share, mean = weight @ design, target.sum()
    gram = design.T @ (weight[:, None] * design) - np.outer(share, share)
    moment = design.T @ target - share * mean
    coefficients = _path(gram, moment, sorted(set(penalties), reverse=True))
    return tuple(
        MultiaccuracyFit(float(penalty), float(mean - share @ coefficients[penalty]), coefficients[penalty])
        for penalty in penalties
    )


def _path(gram: FloatArray, moment: FloatArray, penalties: list[float]) -> dict[float, FloatArray]:
    """Coefficients for each penalty, from the largest down, each started where the last one ended."""
    found: dict[float, FloatArray] = {}
    coefficient = np.zeros(len(moment))
    for penalty in penalties:
        if penalty == 0:
            # Groups that partition the rows are collinear: the solution of least norm.
            found[penalty] = np.linalg.lstsq(gram, moment, rcond=1e-11)[0]
        else:
            coefficient = _coordinate_descent(gram, moment, penalty, coefficient)
            found[penalty] = coefficient
    return found


def _coordinate_descent(
    gram: FloatArray, moment: FloatArray, penalty: float, start: FloatArray, sweeps: int = 20_000
) -> FloatArray:
    """Minimise ``b·gram·b / 2 - moment·b + penalty |b|`` until no step would change it."""
    b = start.copy()
    slope = moment - gram @ b
    scale = np.diag(gram).copy()
    # A group of everybody, or of nobody, says nothing beside the intercept.
    moving = np.flatnonzero(scale > 1e-14).tolist()
    for _ in range(sweeps):
        largest = 0.0
        for j in moving:
            pull = slope[j] + scale[j] * b[j]
            new = (pull - penalty if pull > penalty else pull + penalty if pull < -penalty else 0.0) / scale[
                j
            ]
            step = new - b[j]
            if step != 0.0:
                b[j] = new
                slope -= gram[:, j] * step
                largest = max(largest, abs(step) * scale[j])
        if largest < _SETTLED:
            break
    return b


def _learn(cells: Cells, settings: Settings) -> MultiaccuracyFit:
    if "penalty" in settings:  # nothing is to be chosen
        return multiaccuracy_path(cells.of_role(Role.fit, Role.early_stopping), [settings["penalty"]])[0]
    fit, stop = halves(cells)
    return fit_multiaccuracy(fit, stop, settings.get("penalties", PENALTIES))


def _each(penalties: Sequence[float]) -> tuple[Setting, ...]:
    return tuple((("penalty", penalty),) for penalty in penalties)


METHOD = Method(
    "multiaccuracy", "multiaccurate", _learn, MultiaccuracyFit.from_dict,
    swept=_each(PENALTIES), own=lambda settings: _each(settings["penalties"]),
)  # fmt: skip

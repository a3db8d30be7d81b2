"""The usual maps of a score: isotonic regression, Platt and temperature scaling; pooled or by group.

One map of the score for everybody or, by group, one for each group: a row gets the mean of the maps of its
groups, on the scale that they are made on (the score, or its log-odds), and the map of everybody if it is in
none. Groups without weight have the map of everybody.

- isotonic: the non-decreasing values nearest to the mean labels of the score bins, linear between the bins'
  mean scores;
- Platt: ``logit f' = a · logit f + b`` of the highest likelihood (Platt 1999, without his smoothed labels);
- temperature: the same with ``b = 0`` (Guo et al. 2017).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from mcspark.core.baselines.method import Method, Settings
from mcspark.core.baselines.plain import read_floats, read_int
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.groups import MAX_GROUPS
from mcspark.core.cells.isotonic import isotonic
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.model.additive import BoolArray, checked_membership
from mcspark.core.model.stages import logit, sigmoid

Kind = Literal["isotonic", "platt", "temperature"]

_LARGEST = 50.0
"""No slope, and no shift of log-odds, is larger: where labels and scores are separable they have no limit."""

_STEPS = 50
_RIDGE = 1e-9


@dataclass(frozen=True, eq=False)
class IsotonicFit:
    """Piecewise linear maps: ``value[k]`` at the scores ``at``, constant outside.

    Parameters
    ----------
    at : ndarray, shape (B,)
        Increasing.
    value : ndarray, shape (M, B), range [0, 1]
        Of everybody, then of each group if M is G + 1.
    n_groups : int
    """

    at: FloatArray
    value: FloatArray
    n_groups: int

    def apply_signatures(
        self, score: FloatArray, signature: IntArray, membership_table: BoolArray
    ) -> FloatArray:
        """Calibrated scores (N,) of scores (N,); ``signature`` (N,) is a row of ``membership_table``."""
        share = _shares(membership_table, self.n_groups, len(self.value))
        maps = share @ self.value
        if not len(self.at):
            return np.array(score, dtype=np.float64)
        place = np.clip(np.searchsorted(self.at, score, side="right") - 1, 0, max(len(self.at) - 2, 0))
        after = np.minimum(place + 1, len(self.at) - 1)
        width = np.where(after > place, self.at[after] - self.at[place], 1.0)
        t = np.clip((score - self.at[place]) / width, 0.0, 1.0)
        low, high = maps[signature, place], maps[signature, after]
        return np.asarray(np.clip(low + t * (high - low), 0.0, 1.0))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {"at": self.at.tolist(), "value": self.value.tolist(), "n_groups": self.n_groups}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> IsotonicFit:
        """Inverse of :meth:`to_dict`; ValueError on anything that is no such fit."""
        at = read_floats(plain, "at", (None,), 0.0, 1.0)
        if (np.diff(at) <= 0).any():
            raise ValueError("at must increase")
        value, n_groups = read_floats(plain, "value", (None, len(at)), 0.0, 1.0), _n_groups(plain)
        _checked_maps(len(value), n_groups)
        return cls(at, value, n_groups)


@dataclass(frozen=True, eq=False)
class LogitFit:
    """Lines on the scale of log-odds, ``slope · logit f + shift``.

    Parameters
    ----------
    slope, shift : ndarray, shape (M,)
        Of everybody, then of each group if M is G + 1.
    n_groups : int
    """

    slope: FloatArray
    shift: FloatArray
    n_groups: int

    def apply_signatures(
        self, score: FloatArray, signature: IntArray, membership_table: BoolArray
    ) -> FloatArray:
        """Calibrated scores (N,) of scores (N,); ``signature`` (N,) is a row of ``membership_table``."""
        share = _shares(membership_table, self.n_groups, len(self.slope))
        return sigmoid((share @ self.slope)[signature] * logit(score) + (share @ self.shift)[signature])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {"slope": self.slope.tolist(), "shift": self.shift.tolist(), "n_groups": self.n_groups}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> LogitFit:
        """Inverse of :meth:`to_dict`; ValueError on anything that is no such fit."""
        slope = read_floats(plain, "slope", (None,), -_LARGEST, _LARGEST)
        shift, n_groups = read_floats(plain, "shift", (len(slope),), -_LARGEST, _LARGEST), _n_groups(plain)
        _checked_maps(len(slope), n_groups)
        return cls(slope, shift, n_groups)


def fit_isotonic(cells: Cells, *, by_group: bool = False) -> IsotonicFit:
    """Isotonic regression of the labels on the score bins; see the module.

    Parameters
    ----------
    cells : Cells
        To learn from, all of them.
    by_group : bool
    """
    weight, label, score = (_sums(cells, name, by_group=by_group) for name in ("weight", "label", "score"))
    used = weight[0] > 0
    weight, label, score = weight[:, used], label[:, used], score[:, used]
    at = np.maximum.accumulate(np.clip(score[0] / weight[0], 0.0, 1.0))
    # Bins that differ by rounding alone are one place.
    starts = np.flatnonzero(np.diff(at, prepend=-1.0) > 0)
    at = at[starts]
    weight, label = (
        np.add.reduceat(sums, starts, axis=1) if len(starts) else sums for sums in (weight, label)
    )
    value = np.empty_like(weight)
    for k in range(len(weight)):
        found = isotonic(weight[k], np.clip(label[k], 0.0, weight[k]))
        known = np.flatnonzero(weight[k] > 0)
        # Bins in which a group has no rows are between those that have.
        value[k] = np.interp(at, at[known], found[known]) if len(known) else value[0]
    return IsotonicFit(at, np.clip(value, 0.0, 1.0), len(cells.groups))


def fit_logit(cells: Cells, *, by_group: bool = False, shift: bool = True) -> LogitFit:
    """Platt scaling, or temperature scaling without ``shift``, by Newton's method on the score bins.

    Parameters
    ----------
    cells : Cells
        To learn from, all of them; rows of a bin stand at the bin's mean score.
    by_group, shift : bool
    """
    weight, label, score = (_sums(cells, name, by_group=by_group) for name in ("weight", "label", "score"))
    filled = weight > 0
    odds = logit(np.where(filled, score / np.where(filled, weight, 1.0), 0.5))
    lines = np.tile([1.0, 0.0], (len(weight), 1))
    for _ in range(_STEPS):
        lines = _newton(lines, odds, weight, label, shift=shift)
    empty = ~filled.any(axis=1)
    lines[empty] = lines[0]
    return LogitFit(lines[:, 0], lines[:, 1], len(cells.groups))


def _newton(
    lines: FloatArray, odds: FloatArray, weight: FloatArray, label: FloatArray, *, shift: bool
) -> FloatArray:
    """One step towards the highest likelihood, shortened where it would lower it."""
    mean = sigmoid(lines[:, :1] * odds + lines[:, 1:])
    residual, spread = label - weight * mean, weight * mean * (1 - mean)
    design = np.stack([odds, np.full_like(odds, float(shift))], axis=2)
    gradient = np.einsum("kb,kbi->ki", residual, design)
    scale = 1.0 + weight.sum(axis=1)
    hessian = np.einsum("kb,kbi,kbj->kij", spread, design, design)
    hessian += (_RIDGE * scale)[:, None, None] * np.eye(2)
    step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
    before = _likelihood(lines, odds, weight, label)
    for _ in range(_STEPS):
        found = np.clip(lines + step, -_LARGEST, _LARGEST)
        worse = _likelihood(found, odds, weight, label) < before
        if not worse.any():
            break
        step[worse] /= 2
    return np.where(worse[:, None], lines, found)


def _likelihood(lines: FloatArray, odds: FloatArray, weight: FloatArray, label: FloatArray) -> FloatArray:
    total = lines[:, :1] * odds + lines[:, 1:]
    return np.asarray((label * total - weight * np.logaddexp(0.0, total)).sum(axis=1))


def _sums(cells: Cells, name: str, *, by_group: bool) -> FloatArray:
    """Sums by bin of everybody and, by group, of each group; shape (M, bins)."""
    whole = cells.level_sums(name)[None]
    return np.concatenate([whole, cells.group_sums(name)]) if by_group else whole


def _shares(membership_table: BoolArray, n_groups: int, n_maps: int) -> FloatArray:
    """How much each map counts in each signature, shape (S, M)."""
    member = checked_membership(membership_table, n_groups).astype(np.float64)
    if n_maps == 1:
        return np.ones((len(member), 1))
    count = member.sum(axis=1, keepdims=True)
    return np.concatenate([(count == 0).astype(np.float64), member / np.maximum(count, 1.0)], axis=1)


def _n_groups(plain: Mapping[str, Any]) -> int:
    return read_int(plain, "n_groups", 0, MAX_GROUPS)


def _checked_maps(n_maps: int, n_groups: int) -> None:
    if n_maps not in (1, n_groups + 1):
        raise ValueError(
            f"there are {n_maps} maps; one, or {n_groups + 1} for everybody and each group, are due"
        )


def _learn(kind: Kind, cells: Cells, settings: Settings) -> IsotonicFit | LogitFit:
    by_group = bool(settings.get("by_group", False))
    cells = cells.of_role(Role.fit, Role.early_stopping)  # nothing stops early here
    if kind == "isotonic":
        return fit_isotonic(cells, by_group=by_group)
    return fit_logit(cells, by_group=by_group, shift=kind == "platt")


def _method(kind: Kind, label: str, of: type[IsotonicFit | LogitFit]) -> Method:
    return Method(
        kind, label, partial(_learn, kind), of.from_dict,
        swept=((("by_group", 0),), (("by_group", 1),)),
        own=lambda settings: ((("by_group", int(settings["by_group"])),),),
    )  # fmt: skip


ISOTONIC = _method("isotonic", "isotonic", IsotonicFit)
PLATT = _method("platt", "Platt", LogitFit)
TEMPERATURE = _method("temperature", "temperature", LogitFit)

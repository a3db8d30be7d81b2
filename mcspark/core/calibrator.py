"""The fitted calibrators by the name of their method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from mcspark.core.baselines.lsboost import LsboostFit
from mcspark.core.baselines.mcboost import McboostFit
from mcspark.core.baselines.multiaccuracy import MultiaccuracyFit
from mcspark.core.baselines.squarelev import SquarelevFit
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.model.additive import BoolArray
from mcspark.core.model.stages import Stages


class SignatureCalibrator(Protocol):
    """What every fitted calibrator can do: score rows by the groups of their signature."""

    def apply_signatures(
        self, score: FloatArray, signature: IntArray, membership: BoolArray, /
    ) -> FloatArray:
        """Calibrated scores, shape (N,), range [0, 1].

        Parameters
        ----------
        score : ndarray, shape (N,), range [0, 1]
        signature : ndarray of int, shape (N,)
            Row of ``membership`` of each score.
        membership : ndarray of bool, shape (S, G)
        """

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""


_STAGES = ("trees", "none")
"""Methods whose calibrator is :class:`~mcspark.core.model.stages.Stages`; ``none`` has no stage."""

_FITS: dict[str, Callable[[Mapping[str, Any]], SignatureCalibrator]] = {
    "multiaccuracy": MultiaccuracyFit.from_dict,
    "mcboost": McboostFit.from_dict,
    "lsboost": LsboostFit.from_dict,
    "squarelev": SquarelevFit.from_dict,
}


def calibrator_from_dict(method: str, plain: Any, groups: tuple[str, ...]) -> SignatureCalibrator:
    """Rebuild the calibrator of a method from its plain form; the input is untrusted.

    Parameters
    ----------
    method : str
    plain : Any
    groups : tuple of str
        Names of the groups that it must be a calibrator of, in order.

    Raises
    ------
    ValueError
        If there is no such method, the plain form is not its own, or it is about other groups.
    """
    if method in _STAGES:
        stages = Stages.from_dict(plain)
        if stages.groups != groups:
            raise ValueError("the calibrator and the groups disagree about the order of features")
        if method == "none" and stages.stages:
            raise ValueError("a calibrator that changes nothing has no stages")
        return stages
    if method not in _FITS:
        raise ValueError(f"unknown method {method!r}; known are {', '.join(sorted([*_STAGES, *_FITS]))}")
    fit = _FITS[method](plain)
    found = len(fit.coefficient) if isinstance(fit, MultiaccuracyFit) else getattr(fit, "n_groups", None)
    if found != len(groups):
        raise ValueError(f"the calibrator is about {found} groups, but {len(groups)} are defined")
    return fit

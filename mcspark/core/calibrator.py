"""The methods of calibration by their names, and their fitted calibrators from plain form."""

from __future__ import annotations

from typing import Any

from mcspark.core.baselines import (
    calibrated_multiaccuracy,
    lsboost,
    mcboost,
    multiaccuracy,
    recalibration,
    squarelev,
)
from mcspark.core.baselines.method import Method, SignatureCalibrator
from mcspark.core.model.stages import Stages

__all__ = ["BASELINES", "SignatureCalibrator", "calibrator_from_dict"]

BASELINES: dict[str, Method] = {
    method.name: method
    for method in (
        multiaccuracy.METHOD, mcboost.METHOD, lsboost.METHOD, squarelev.METHOD, recalibration.ISOTONIC,
        recalibration.PLATT, recalibration.TEMPERATURE, calibrated_multiaccuracy.METHOD,
    )
}  # fmt: skip
"""The methods that are neither the trees nor the score as it is, in the order of a comparison."""

_STAGES = ("trees", "none")
"""Methods whose calibrator is :class:`~mcspark.core.model.stages.Stages`; ``none`` has no stage."""


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
    if method not in BASELINES:
        raise ValueError(f"unknown method {method!r}; known are {', '.join(sorted([*_STAGES, *BASELINES]))}")
    fit = BASELINES[method].from_dict(plain)
    if fit.n_groups != len(groups):
        raise ValueError(f"the calibrator is about {fit.n_groups} groups, but {len(groups)} are defined")
    return fit

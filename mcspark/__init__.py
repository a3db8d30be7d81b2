"""Multicalibrated scores for every group, at population scale, on Spark."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcspark.ml.baselines import (
        CalibratedMultiaccuracy,
        Isotonic,
        LSBoost,
        MCBoost,
        Multiaccuracy,
        Platt,
        SquareLev,
        Temperature,
        Uncalibrated,
    )
    from mcspark.ml.cells.groups import GroupSet
    from mcspark.ml.evaluation import MulticalibrationEvaluator
    from mcspark.ml.multicalibrator import Multicalibrator, MulticalibratorModel

try:
    __version__ = version("mcspark")
except PackageNotFoundError:  # shipped as plain files, by --py-files
    __version__ = "unknown"

__all__ = [
    "CalibratedMultiaccuracy",
    "GroupSet",
    "Isotonic",
    "LSBoost",
    "MCBoost",
    "Multiaccuracy",
    "MulticalibrationEvaluator",
    "Multicalibrator",
    "MulticalibratorModel",
    "Platt",
    "SquareLev",
    "Temperature",
    "Uncalibrated",
]

_HOMES = {
    "CalibratedMultiaccuracy": "mcspark.ml.baselines",
    "GroupSet": "mcspark.ml.cells.groups",
    "Isotonic": "mcspark.ml.baselines",
    "LSBoost": "mcspark.ml.baselines",
    "MCBoost": "mcspark.ml.baselines",
    "Multiaccuracy": "mcspark.ml.baselines",
    "MulticalibrationEvaluator": "mcspark.ml.evaluation",
    "Multicalibrator": "mcspark.ml.multicalibrator",
    "MulticalibratorModel": "mcspark.ml.multicalibrator",
    "Platt": "mcspark.ml.baselines",
    "SquareLev": "mcspark.ml.baselines",
    "Temperature": "mcspark.ml.baselines",
    "Uncalibrated": "mcspark.ml.baselines",
}


def __getattr__(name: str) -> Any:
    # Imported when first used: the command line and the arithmetic need no Spark.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

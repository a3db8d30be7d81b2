"""What a run has found out about one score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcspark.core.metrics.metrics import Metrics
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.pipelines.segments import SegmentResult


@dataclass(frozen=True)
class ScoreResult:
    """A score with its metrics and, of a calibration, its calibrator.

    Parameters
    ----------
    name : str
        Its column.
    metrics : mapping of str to Metrics
        ``before`` and, of a calibration, ``after``.
    model : MulticalibratorModel, optional
        The calibrator that was fitted.
    segments : sequence of SegmentResult
        What became of each, of a calibration by segment.
    told : mapping
        For the summary, what is not of every run: ``learned`` of kept cells, ``segments``.
    """

    name: str
    metrics: Mapping[str, Metrics]
    model: MulticalibratorModel | None = None
    segments: Sequence[SegmentResult] = ()
    told: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fitted(self) -> MulticalibratorModel:
        """The calibrator of a calibration."""
        assert self.model is not None
        return self.model

"""What a run has found out about one score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcspark.core.metrics.metrics import Metrics
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.pipelines.judging.segments import SegmentResult


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
    extra : mapping
        For the summary, what is not of every run: ``learned`` of kept cells, ``segments``.
    """

    name: str
    metrics: Mapping[str, Metrics]
    model: MulticalibratorModel | None = None
    segments: Sequence[SegmentResult] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fitted(self) -> MulticalibratorModel:
        """The calibrator of a calibration."""
        assert self.model is not None
        return self.model


@dataclass(frozen=True)
class Losses:
    """Multi-class log loss of the scores that came in and of the calibrated ones.

    Parameters
    ----------
    before : float or None
        None where no row has weight.
    after : float or None
        None also where nothing was calibrated.
    """

    before: float | None
    after: float | None = None


@dataclass(frozen=True)
class Vector:
    """What becomes of the classes' scores together.

    Parameters
    ----------
    projected : bool
        Whether calibrated scores are made to sum to 1; otherwise all scores stay as they came.
    stopping : Losses
        Of the early-stopping rows, by which that was decided.
    """

    projected: bool
    stopping: Losses


@dataclass(frozen=True)
class Calibration:
    """What a run has learned, of all its scores.

    Parameters
    ----------
    results : sequence of ScoreResult
        One a score.
    vector : Vector, optional
        Of classes.
    top : ScoreResult, optional
        Of the class that is named, which has no calibrator of its own.
    test : Losses, optional
        Of the held-out rows, of classes.
    """

    results: Sequence[ScoreResult]
    vector: Vector | None = None
    top: ScoreResult | None = None
    test: Losses | None = None

    @property
    def shown(self) -> list[ScoreResult]:
        """All that is measured and reported on."""
        return [*self.results, *([self.top] if self.top else [])]

    @property
    def models(self) -> list[MulticalibratorModel]:
        """The calibrators, one a score."""
        return [result.fitted for result in self.results]

    @property
    def projected(self) -> bool:
        """Whether calibrated scores are made to sum to 1."""
        return self.vector is not None and self.vector.projected

    def changes(self, result: ScoreResult) -> bool:
        """Whether a score may be another one after."""
        return self.projected if self.vector else result.fitted.changes

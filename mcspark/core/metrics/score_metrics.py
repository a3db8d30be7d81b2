"""Metrics of the score itself, without a grid: one object each, from which every output takes them.

The summary line, the metrics table, the report, the evaluator and the comparison go through
:data:`SCORE_METRICS`: a metric that is added here is in all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from mcspark.core.cells.summed import Summed
from mcspark.core.metrics.cumulative import (
    averaged_two_bin_error,
    ecce,
    ecce_detectable,
    ecce_p_value,
    ecce_sigma,
    worst_group_ecce_sigma,
)
from mcspark.core.metrics.proper_loss import calibration_loss, log_loss, refinement_loss
from mcspark.core.metrics.ranking import auc, average_precision


class Found(NamedTuple):
    """A value, None where it is not defined, and the group that attains it if it is a maximum over groups."""

    value: float | None
    group: str | None = None


@dataclass(frozen=True)
class ScoreMetric:
    """A metric of the score itself.

    Attributes
    ----------
    key, name : str
        In the summary and tables, and for people.
    formula, meaning : str
    of : callable
        From the cells of the rows to judge and the fewest rows of a group that counts.
    larger_is_better : bool or None
        None where no direction is better.
    """

    key: str
    name: str
    formula: str
    meaning: str
    of: Callable[[Summed, int], Found]
    larger_is_better: bool | None = False


def _plain(metric: Callable[[Summed], float | None]) -> Callable[[Summed, int], Found]:
    return lambda cells, _: Found(metric(cells))


def _loss(cells: Summed) -> float | None:
    return cells.loss() if cells.total("weight") > 0 else None


SCORE_METRICS = (
    ScoreMetric(
        "loss", "squared loss", "Σ w (f − y)² / Σ w",
        "Mean squared loss of the score itself (the Brier score); by grid, of the rounded score.",
        _plain(_loss),
    ),
    ScoreMetric(
        "log_loss", "log loss", "− Σ w (y log f + (1 − y) log(1 − f)) / Σ w",
        "Mean cross-entropy: confident errors cost more than in the squared loss.", _plain(log_loss),
    ),
    ScoreMetric(
        "brier_calibration", "calibration part of the loss",
        "loss − loss of the isotonic regression of y on f",
        "What a non-decreasing correction of everybody's score would take off the squared loss.",
        _plain(calibration_loss),
    ),
    ScoreMetric(
        "brier_refinement", "refinement part of the loss", "loss of the isotonic regression of y on f",
        "What is left of the squared loss then: how well the score separates the labels.",
        _plain(refinement_loss),
    ),
    ScoreMetric(
        "auc", "AUC", "Pr[f₊ > f₋] + ½ Pr[f₊ = f₋]",
        "How often a row with label 1 has a higher score than one with label 0; ties count half.",
        _plain(auc), larger_is_better=True,
    ),
    ScoreMetric(
        "pr_auc", "PR-AUC (average precision)", "Σ over thresholds k of (Rₖ − Rₖ₋₁) · Pₖ",
        "Mean precision over the recalls that thresholds reach; chance gives the share of labels of 1.",
        _plain(average_precision), larger_is_better=True,
    ),
    ScoreMetric(
        "ecce", "ECCE (cumulative calibration error)",
        "max over score intervals I of |Σ_{f ∈ I} w (f − y)| / Σ w",
        "Largest error over any interval of scores, by its share of the rows; without grid or kernel.",
        _plain(ecce),
    ),
    ScoreMetric(
        "ecce_sigma", "ECCE in σ", "ECCE / σ, σ = √(Σ w² f (1 − f)) / Σ w",
        "In units of chance: about 1.6 is expected of a calibrated score, 2.5 or more in 5 % of cases.",
        _plain(ecce_sigma),
    ),
    ScoreMetric(
        "ecce_p_value", "p-value of the ECCE", "Pr[range of a Brownian motion ≥ ECCE / σ]",
        "How often chance alone does as badly.", _plain(ecce_p_value), larger_is_better=None,
    ),
    ScoreMetric(
        "ecce_detectable", "detectable ECCE", "2.498 σ",
        "Smallest ECCE that these rows can tell from chance at a level of 5 %.", _plain(ecce_detectable),
        larger_is_better=None,
    ),
    ScoreMetric(
        "worst_group_ecce_sigma", "worst group's ECCE in σ", "max over groups of ECCE / σ inside the group",
        "The group whose error is the most surprising; the largest of many groups is larger than one alone.",
        lambda cells, min_rows: Found(*worst_group_ecce_sigma(cells, min_rows)),
    ),
    ScoreMetric(
        "atb", "ATB (averaged two-bin error)",
        "∫₀¹ (Σ_{f < t} w (f − y) / Σ w)² + (Σ_{f ≥ t} w (f − y) / Σ w)² dt",
        "A calibration error that no scores make smaller in expectation than the true probabilities.",
        _plain(averaged_two_bin_error),
    ),
)  # fmt: skip


def score_metrics(cells: Summed, min_rows: int = 1) -> dict[str, Found]:
    """Every metric of :data:`SCORE_METRICS` by its key, for the rows of these cells."""
    return {metric.key: metric.of(cells, min_rows) for metric in SCORE_METRICS}

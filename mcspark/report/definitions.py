"""What the metrics mean, in a sentence and a formula each: for the report, the model card and the docs."""

from __future__ import annotations

from dataclasses import dataclass

from mcspark.core.metrics.lead import BLIND_SHARE
from mcspark.core.metrics.score_metrics import SCORE_METRICS


@dataclass(frozen=True)
class Definition:
    """A metric.

    Attributes
    ----------
    name, key : str
        For people, and in summary and metrics table.
    formula, meaning : str
    """

    name: str
    key: str
    formula: str
    meaning: str


DEFINITIONS = (
    Definition(
        "MC error (multicalibration error)",
        "mc_error",
        "max over groups g of Σ over levels v of Pr[f = v, g = 1] · |E[f − y | f = v, g = 1]|",
        "How far scores are from labels inside the worst group, level by level; f is the score rounded to "
        "the middle of its level on a grid of m levels, (2k + 1) / (2m). A group counts by its share of all "
        "rows.",
    ),
    Definition(
        "MA error (multiaccuracy error)",
        "ma_error",
        "max over groups g of Pr[g = 1] · |E[f − y | g = 1]|",
        "The same with all levels as one: errors of opposite sign cancel. By grid, of the rounded score; "
        "without one, of the score itself, with its own ma_noise_floor and ma_p_value.",
    ),
    Definition(
        "blind grid",
        "fullest_level_share",
        f"largest share of the weight in one level, before calibration, ≥ {BLIND_SHARE:g}",
        "Such a grid cannot tell the scores apart, and the MC error on it says next to nothing. What is led "
        "with is the MC error on a grid that sees or, where none does, the MA error of the score itself and "
        "smECE.",
    ),
    Definition(
        "noise floor",
        "noise_floor",
        "mean MC error of labels drawn anew with E[y | f, g] = f",
        "What a perfectly calibrated score would show with these rows. With finitely many rows it is not 0.",
    ),
    Definition(
        "p-value",
        "p_value",
        "(1 + number of such draws with an MC error at least as large) / (1 + number of draws)",
        "How often chance alone does as badly.",
    ),
    Definition(
        "interval",
        "interval",
        "errors of the population under which the measured error is no surprise, 90 %",
        "Chance pushes a measured MC error up, so that the interval may lie below it, and may reach 0.",
    ),
    Definition(
        "smECE (smooth calibration error)",
        "smece, worst_group_smece",
        "mean |residual smoothed by a kernel of width σ| / mean smoothed weight, at the σ that equals it",
        "Calibration error inside one group without any grid; it does not count by the group's share.",
    ),
    *(Definition(metric.name, metric.key, metric.formula, metric.meaning) for metric in SCORE_METRICS),
    Definition(
        "saturation",
        "saturation",
        "MC error ≤ √(ε_loss + ε_round), ε_loss = ℓ(f) − ℓ(p(f)), ε_round = ℓ(f rounded) − ℓ(f)",
        "ε_loss is what a second pass p of the calibrator over its own output gains on the held-out rows. "
        "Where it is about 0, nothing that depth-2 trees could learn is left.",
    ),
)

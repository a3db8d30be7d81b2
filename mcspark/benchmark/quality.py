"""Whether training on cells gives as good a model as training on the rows, fold by fold."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np
from pyspark.sql import SparkSession

from mcspark.benchmark.training import Rows, train_lightgbm
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import MAX_DEPTH, FloatArray, ScoreBins, base_levels, level_index, level_value
from mcspark.core.metrics.calibration_error import calibration_error
from mcspark.core.training.rounds import fit_stages
from mcspark.core.training.training_table import TreeSettings
from mcspark.ml.training.trees import SynapseTrainer

GRIDS = (10, 20, 75)
_BASE_LEVELS = base_levels((10, 20, 30, 50, 75, 100))
_SCORE_BINS = 255
_STOPPING = 0.3


@dataclass(frozen=True)
class Quality:
    """How good one model is on the test rows.

    Parameters
    ----------
    training : str
        ``cells``, ``rows`` (LightGBM's own library), or ``none`` for the base score.
    fold : int
        Draw of the early-stopping rows; the test rows are always the same.
    trees : int
    loss : float
        Mean squared loss.
    mc_error : dict of str to float
        By grid.
    """

    training: str
    fold: int
    trees: int
    loss: float
    mc_error: dict[str, float]

    def plain(self) -> dict[str, object]:
        """JSON form."""
        return asdict(self)


def compare_quality(spark: SparkSession, rows: Rows, folds: int) -> list[Quality]:
    """Train both ways on the same folds, each stopped by its own held-out rows.

    Parameters
    ----------
    spark : SparkSession
    rows : Rows
    folds : int
        How often the early-stopping rows are drawn anew.
    """
    settings = TreeSettings()
    found = [_measure("none", 0, 0, rows, rows.score)]
    for fold in range(folds):
        drawn = _redrawn(rows, fold)
        booster = train_lightgbm(drawn, settings, stop_early=True)
        features = np.column_stack([rows.score, rows.membership]).astype(np.float64)
        corrected = np.clip(rows.score + booster.predict(features), 0, 1)
        found.append(_measure("rows", fold, booster.best_iteration, rows, corrected))

        cells = Cells.from_rows(
            drawn.score, drawn.label, drawn.membership, bins=_bins(drawn), role=drawn.role, groups=rows.groups
        )
        stages = fit_stages(cells, settings, SynapseTrainer(spark)).stages
        calibrated = stages.apply(rows.score, rows.membership)
        found.append(_measure("cells", fold, stages.trees, rows, calibrated))
    return found


def same_quality(found: list[Quality]) -> dict[str, bool]:
    """Loss within 0.2 % of the rows' in every fold; MC error within the rows' spread over the folds."""
    by_rows = [q for q in found if q.training == "rows"]
    by_cells = [q for q in found if q.training == "cells"]
    worst = max(c.loss / r.loss - 1 for c, r in zip(by_cells, by_rows, strict=True))
    within = True
    for m in map(str, GRIDS):
        errors = np.array([q.mc_error[m] for q in by_rows])
        spread = errors.max() - errors.min()
        mean = np.mean([q.mc_error[m] for q in by_cells])
        within = within and bool(mean <= errors.mean() + spread)
    return {"loss_of_cells_within_0.2_percent": worst <= 0.002, "mc_error_of_cells_within_folds": within}


def _redrawn(rows: Rows, fold: int) -> Rows:
    draw = np.random.default_rng(fold).random(len(rows.score))
    learning = np.where(draw < _STOPPING, int(Role.early_stopping), int(Role.fit))
    return replace(rows, role=np.where(rows.role == Role.test, int(Role.test), learning))


def _bins(rows: Rows) -> ScoreBins:
    fine = _BASE_LEVELS * 2**MAX_DEPTH
    learning = rows.score[rows.role != Role.test]
    weight = np.bincount(level_index(learning, fine), minlength=fine).astype(np.float64)
    return ScoreBins.from_fine_weights(_BASE_LEVELS, weight, _SCORE_BINS)


def _measure(training: str, fold: int, trees: int, rows: Rows, score: FloatArray) -> Quality:
    test = rows.role == Role.test
    score, label, member = score[test], rows.label[test], rows.membership[test]
    errors = {
        str(m): float(calibration_error(level_value(level_index(score, m), m), label, member).max())
        for m in GRIDS
    }
    return Quality(training, fold, trees, float(np.mean((score - label) ** 2)), errors)

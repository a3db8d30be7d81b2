"""The calibrator that a configuration asks for."""

from __future__ import annotations

from mcspark.config import Calibrator
from mcspark.core.training.recipe import RecipeName
from mcspark.core.training.training_table import TreeSettings
from mcspark.ml.baselines import Baseline, LSBoost, MCBoost, Multiaccuracy, SquareLev, Uncalibrated
from mcspark.ml.multicalibrator import Multicalibrator
from mcspark.ml.params import SEARCHED_PARAMS


def estimator_of(settings: Calibrator) -> Multicalibrator | Baseline:
    """An estimator with the settings of the ``calibrator`` section; groups and columns are not set."""
    return _trees(settings) if settings.method == "trees" else _baseline(settings)


def tree_settings(settings: Calibrator) -> TreeSettings:
    """How the ``calibrator`` section grows trees, whatever its method is."""
    return _trees(settings).settings


def recipe_of(settings: Calibrator) -> RecipeName:
    """The recipe; that of trees grown on rows is the paper's, as each candidate would read all rows again."""
    return "paper" if settings.training == "rows" else settings.recipe


def given(settings: Calibrator) -> frozenset[str]:
    """Keys of the recipe that the configuration sets, which are kept."""
    return frozenset(SEARCHED_PARAMS) & settings.model_fields_set


def _trees(c: Calibrator) -> Multicalibrator:
    values = {param: getattr(c, key) for key, param in SEARCHED_PARAMS.items() if key in given(c)}
    if "rounds" in values:
        values["rounds"] = str(values["rounds"])
    return Multicalibrator(
        recipe=recipe_of(c),
        featureFraction=c.feature_fraction,
        maxTrees=c.max_trees,
        earlyStoppingRounds=c.early_stopping_rounds,
        engine=c.engine,
        seed=c.seed,
        timeoutSeconds=float(c.timeout_seconds),
        **values,
    )


def _baseline(c: Calibrator) -> Baseline:
    if c.method == "multiaccuracy":
        return Multiaccuracy(penalties=list(c.multiaccuracy.penalties))
    if c.method == "mcboost":
        m = c.mcboost
        return MCBoost(grid=m.levels, maxPatches=m.max_patches, patience=m.patience)
    if c.method == "lsboost":
        s = c.lsboost
        return LSBoost(
            grid=s.levels, depth=s.depth, learningRate=s.learning_rate, subsample=s.subsample,
            maxRounds=s.max_rounds, patience=s.patience, seed=c.seed,
        )  # fmt: skip
    if c.method == "squarelev":
        return SquareLev(
            maxRounds=c.squarelev.max_rounds, patience=c.early_stopping_rounds,
            minRowsInLeaf=c.min_rows_in_leaf,
        )  # fmt: skip
    return Uncalibrated()

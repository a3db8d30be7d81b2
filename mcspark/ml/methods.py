"""The calibrator that a configuration asks for."""

from __future__ import annotations

from typing import Any

from mcspark.config import Calibrator
from mcspark.core.training.recipe import RecipeName
from mcspark.core.training.training_table import TreeSettings
from mcspark.ml.baselines import ESTIMATORS, Baseline
from mcspark.ml.multicalibrator import Multicalibrator
from mcspark.ml.params import SEARCHED_PARAMS, camel


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
        monotone=c.monotone,
        engine=c.engine,
        seed=c.seed,
        timeoutSeconds=float(c.timeout_seconds),
        **values,
    )


def settings_of(c: Calibrator, method: str) -> dict[str, Any]:
    """Settings of a baseline by their names in the configuration; the grid is ``grid``."""
    shared = {"seed": c.seed, "min_rows_in_leaf": c.min_rows_in_leaf, "patience": c.early_stopping_rounds}
    own = getattr(c, method, None)
    found = {**shared, **({} if own is None else own.model_dump())}
    return {"grid" if name == "levels" else name: value for name, value in found.items()}


def _baseline(c: Calibrator) -> Baseline:
    kind = ESTIMATORS[c.method]
    settings = {camel(name): value for name, value in settings_of(c, c.method).items()}
    return kind(**{name: value for name, value in settings.items() if name in kind.own_params()})

"""A saved model as it is when no run is in the middle of replacing it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import SparkSession

from mcspark.config import ScoredTable
from mcspark.data.leases.lease import settled
from mcspark.errors import ConfigurationError, ContractError
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.ml.score_models import ScoreModels

_TRIES = 3


class Stored(NamedTuple):
    """The calibrators that a run scores with.

    Parameters
    ----------
    models : list of MulticalibratorModel
        One a score.
    projected : bool
        Whether calibrated scores, of classes, are made to sum to 1.
    """

    models: list[MulticalibratorModel]
    projected: bool = False


def stored_models(spark: SparkSession, path: str, run_id: str, scored: ScoredTable) -> Stored:
    """Load the calibrator of each score; a run that replaces the model is waited for.

    What a dead run has left is mended first.

    Raises
    ------
    ConfigurationError
        If the model is of several scores, and one of these is none of them, or is of other classes.
    ContractError
        If there is no model that can be read.
    OutputHeldError
        If a run does not finish replacing it.
    """
    for _ in range(_TRIES):
        settled(spark, path, run_id)
        try:
            return models_at(path, scored)
        except ContractError:
            if not settled(spark, path, run_id):  # else it was being replaced at that moment
                raise
    return models_at(path, scored)


def models_at(path: str, scored: ScoredTable) -> Stored:
    """Load the calibrator of each score, as it stands; raises as :func:`stored_models` does."""
    if not scored.several:
        return Stored([MulticalibratorModel.load(path)])
    found = ScoreModels.load(path)
    if scored.classes is not None or found.classes is not None:
        _refuse_other_classes(path, scored.classes, found.classes)
    if missing := [name for name in scored.all_scores if name not in found.models]:
        raise ConfigurationError(
            f"scored.scores: {path} has no calibrator of {', '.join(missing)}; it has those of "
            f"{', '.join(found.models)}: name some of these, or calibrate again"
        )
    return Stored([found.models[name] for name in scored.all_scores], found.projected)


def _refuse_other_classes(
    path: str, wanted: Mapping[str, str] | None, found: Mapping[str, str] | None
) -> None:
    if wanted == found:
        return

    def words(classes: Mapping[str, str] | None) -> str:
        return "no classes" if classes is None else ", ".join(f"{c}: {s}" for c, s in classes.items())

    raise ConfigurationError(
        f"scored.classes: {path} is a model of {words(found)}, and named are {words(wanted)}; a row's scores "
        "are projected together: name the same classes and columns, or calibrate again"
    )

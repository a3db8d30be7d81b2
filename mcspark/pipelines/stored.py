"""A saved model as it is when no run is in the middle of replacing it."""

from __future__ import annotations

from pyspark.sql import SparkSession

from mcspark.config import ScoredTable
from mcspark.data.leases.lease import settled
from mcspark.errors import ConfigurationError, ContractError
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.ml.score_models import ScoreModels

_TRIES = 3


def stored_models(
    spark: SparkSession, path: str, run_id: str, scored: ScoredTable
) -> list[MulticalibratorModel]:
    """Load the calibrator of each score; a run that replaces the model is waited for.

    What a dead run has left is mended first.

    Raises
    ------
    ConfigurationError
        If the model is of several scores, and one of these is none of them.
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


def models_at(path: str, scored: ScoredTable) -> list[MulticalibratorModel]:
    """Load the calibrator of each score, as it stands; raises as :func:`stored_models` does."""
    if scored.scores is None:
        return [MulticalibratorModel.load(path)]
    found = ScoreModels.load(path).models
    if missing := [name for name in scored.scores if name not in found]:
        raise ConfigurationError(
            f"scored.scores: {path} has no calibrator of {', '.join(missing)}; it has those of "
            f"{', '.join(found)}: name some of these, or calibrate again"
        )
    return [found[name] for name in scored.scores]

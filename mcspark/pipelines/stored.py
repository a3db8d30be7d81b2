"""A saved model as it is when no run is in the middle of replacing it."""

from __future__ import annotations

from pyspark.sql import SparkSession

from mcspark.data.leases.lease import settled
from mcspark.errors import ContractError
from mcspark.ml.multicalibrator import MulticalibratorModel

_TRIES = 3


def stored_model(spark: SparkSession, path: str, run_id: str) -> MulticalibratorModel:
    """Load a model; a run that replaces it is waited for, and what a dead one has left is mended first.

    Raises
    ------
    ContractError
        If there is no model that can be read.
    OutputHeldError
        If a run does not finish replacing it.
    """
    for _ in range(_TRIES):
        settled(spark, path, run_id)
        try:
            return MulticalibratorModel.load(path)
        except ContractError:
            if not settled(spark, path, run_id):  # else it was being replaced at that moment
                raise
    return MulticalibratorModel.load(path)

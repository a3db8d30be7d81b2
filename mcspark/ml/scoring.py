"""Scoring rows in Spark: Arrow batches of (score, signature) through the calibrator's own arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf

from mcspark.core.calibrator import SignatureCalibrator
from mcspark.core.groups import FittedGroups, distinct_rows
from mcspark.ml.groups import with_signature, word_names


def with_calibrated(
    frame: DataFrame, score: str, groups: FittedGroups, calibrator: SignatureCalibrator, name: str
) -> DataFrame:
    """Add the calibrated score of rows that carry category columns.

    Parameters
    ----------
    frame : DataFrame
    score : str
        Double in [0, 1].
    groups : FittedGroups
    calibrator : SignatureCalibrator
    name : str
        Column to add: double in [0, 1].
    """
    words = word_names(groups)
    return (
        with_signature(frame, groups)
        .withColumn(name, _calibrated(groups, calibrator)(F.col(score), *map(F.col, words)))
        .drop(*words)
    )


def _calibrated(groups: FittedGroups, calibrator: SignatureCalibrator) -> Callable[..., Column]:
    def score_batch(score: pd.Series[float], *words: pd.Series[int]) -> pd.Series[float]:
        signatures, signature = distinct_rows(
            np.stack([np.asarray(w, dtype=np.int64) for w in words], axis=1)
        )
        membership = groups.membership(signatures)
        return pd.Series(calibrator.apply_signatures(score.to_numpy(np.float64), signature, membership))

    # The type by name: Spark would read it from annotations that do not exist at run time.
    return cast("Callable[..., Column]", pandas_udf(score_batch, "double", PandasUDFType.SCALAR))

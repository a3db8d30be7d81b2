"""Scoring rows in Spark: Arrow batches of (score, signature) through the calibrator's own arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from mcspark.core.cells.groups import distinct_rows
from mcspark.core.segments import Part
from mcspark.ml.groups import with_signature, word_names
from mcspark.runtime.archives import quick_to_follow
from mcspark.runtime.batches import gathered

ROWS_AT_ONCE = 200_000
"""Arrow batches are put together to so many rows, for which a calibrator's tables are laid out once."""

Batch = tuple["pd.Series[float]", ...]
"""The score, then the words of the signature."""


def with_calibrated(frame: DataFrame, score: str, scoring: Part, name: str) -> DataFrame:
    """Add the calibrated score of rows that carry category columns.

    Parameters
    ----------
    frame : DataFrame
    score : str
        Double in [0, 1].
    scoring : Part
        A calibrator, and the groups that it is about.
    name : str
        Column to add: double in [0, 1].
    """
    words = word_names(scoring.groups)
    return (
        with_signature(frame, scoring.groups)
        .withColumn(name, _calibrated(scoring)(F.col(score), *map(F.col, words)))
        .drop(*words)
    )


def _calibrated(scoring: Part) -> Callable[..., Column]:
    groups, calibrator = scoring.groups, scoring.calibrator

    def score_batches(batches: Iterable[Batch]) -> Iterator[pd.Series[float]]:
        for some in gathered(batches, ROWS_AT_ONCE, lambda batch: len(batch[0])):
            columns = _joined(some)
            signatures, signature = distinct_rows(np.stack(columns[1:], axis=1).astype(np.int64))
            score = columns[0].astype(np.float64)
            yield pd.Series(calibrator.apply_signatures(score, signature, groups.membership(signatures)))

    score_all = quick_to_follow(score_batches)
    # Spark takes the kind of function from these; those above are text, of types that checkers alone have.
    score_all.__annotations__ = {"batches": Iterator[tuple[pd.Series, ...]], "return": Iterator[pd.Series]}
    return cast("Callable[..., Column]", cast("Any", pandas_udf)(score_all, "double"))


def _joined(batches: list[Batch]) -> list[NDArray[Any]]:
    return [np.concatenate([part.to_numpy() for part in column]) for column in zip(*batches, strict=True)]

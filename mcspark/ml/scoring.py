"""Scoring rows in Spark: Arrow batches of (score, signature) through the calibrator's own arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from mcspark.core.calibrator import SignatureCalibrator
from mcspark.core.cells.groups import FittedGroups, distinct_rows
from mcspark.core.classes import projected as simplex
from mcspark.core.segments import Part
from mcspark.ml.cells.signatures import with_signature, word_names
from mcspark.runtime.tasks.archives import quick_to_follow
from mcspark.runtime.tasks.batches import gathered

ROWS_AT_ONCE = 200_000
"""Arrow batches are put together to so many rows, for which a calibrator's tables are laid out once."""

Batch = tuple["pd.Series[float]", ...]
"""The scores, then the words of the signature."""


class Scored(NamedTuple):
    """A score that is calibrated.

    Parameters
    ----------
    score : str
        Double in [0, 1].
    scoring : Part
        A calibrator, and the groups that it is about.
    name : str
        Column to add: double in [0, 1].
    """

    score: str
    scoring: Part
    name: str


def with_calibrated(frame: DataFrame, score: str, scoring: Part, name: str) -> DataFrame:
    """Add the calibrated score of rows that carry category columns; see :class:`Scored`."""
    return with_each_calibrated(frame, [Scored(score, scoring, name)])


def with_each_calibrated(frame: DataFrame, scored: Sequence[Scored], *, projected: bool = False) -> DataFrame:
    """Add calibrated scores of rows that carry category columns, all of them in one pass.

    Parameters
    ----------
    frame : DataFrame
    scored : sequence of Scored
        Their calibrators are about the same groups.
    projected : bool
        Whether they are the classes' scores of a row, and sum to 1 (:func:`mcspark.core.classes.projected`).
    """
    groups = scored[0].scoring.groups
    words = word_names(groups)
    calibrated = _calibrated(groups, [one.scoring.calibrator for one in scored], projected=projected)
    arguments = [F.col(name) for name in (*(one.score for one in scored), *words)]
    found = with_signature(frame, groups)
    if len(scored) == 1:
        return found.withColumn(scored[0].name, calibrated(*arguments)).drop(*words)
    found = found.withColumn(_EVERY, calibrated(*arguments))
    return found.withColumns({one.name: F.col(_EVERY)[f"c{i}"] for i, one in enumerate(scored)}).drop(
        *words, _EVERY
    )


_EVERY = "__every_calibrated"


def _calibrated(
    groups: FittedGroups, calibrators: Sequence[SignatureCalibrator], *, projected: bool
) -> Callable[..., Column]:
    """Scores and words of signatures to a calibrated score, or to a structure of as many as there are."""
    several = len(calibrators) > 1

    def score_batches(batches: Iterable[Batch]) -> Iterator[pd.Series[float] | pd.DataFrame]:
        for some in gathered(batches, ROWS_AT_ONCE, lambda batch: len(batch[0])):
            columns = _joined(some)
            words = np.stack(columns[len(calibrators) :], axis=1).astype(np.int64)
            signatures, signature = distinct_rows(words)
            members = groups.members(signatures)
            scores = [score.astype(np.float64) for score in columns[: len(calibrators)]]
            found = [
                calibrator.apply_signatures(score, signature, members)
                for calibrator, score in zip(calibrators, scores, strict=True)
            ]
            if projected:
                found = list(simplex(np.stack(found), np.stack(scores)))
            yield (
                pd.DataFrame({f"c{i}": values for i, values in enumerate(found)})
                if several
                else pd.Series(found[0])
            )

    score_all = quick_to_follow(score_batches)
    # Spark takes the kind of function from these; those above are text, of types that checkers alone have.
    returned: Any = Iterator[pd.DataFrame] if several else Iterator[pd.Series]
    score_all.__annotations__ = {"batches": Iterator[tuple[pd.Series, ...]], "return": returned}
    returns = ", ".join(f"c{i} double" for i in range(len(calibrators))) if several else "double"
    return cast("Callable[..., Column]", cast("Any", pandas_udf)(score_all, returns))


def _joined(batches: list[Batch]) -> list[NDArray[Any]]:
    return [np.concatenate([part.to_numpy() for part in column]) for column in zip(*batches, strict=True)]

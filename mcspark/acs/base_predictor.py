"""The uncalibrated base predictors of the paper: a linear regression, and a linear SVM behind a sigmoid.

Both see a category's code as a number, as the paper's linear models do; what they get wrong inside groups
is what calibration is there to mend.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Literal

import numpy as np
import structlog
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.regression import LinearRegression
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

log = structlog.get_logger(__name__)

_SETTLED = 1e-10
_MAX_STEPS = 100


@dataclass(frozen=True)
class LinearPredictor:
    """A linear score of some columns, mapped to [0, 1].

    Parameters
    ----------
    features : tuple of str, length p
    coefficients : tuple of float, length p
    intercept : float
    squash : {"clip", "sigmoid"}
        How the linear value becomes a score in [0, 1].
    """

    features: tuple[str, ...]
    coefficients: tuple[float, ...]
    intercept: float
    squash: Literal["clip", "sigmoid"]

    def margin(self) -> Column:
        """The linear value before it is mapped to [0, 1]."""
        terms = (
            sf.col(name).cast("double") * sf.lit(weight)
            for name, weight in zip(self.features, self.coefficients, strict=True)
        )
        return reduce(add, terms, sf.lit(self.intercept))

    def score(self) -> Column:
        """The score, a double in [0, 1]; null where a feature is null."""
        margin = self.margin()
        if self.squash == "sigmoid":
            return sf.lit(1.0) / (sf.lit(1.0) + sf.exp(-margin))
        return sf.when(margin < 0.0, sf.lit(0.0)).when(margin > 1.0, sf.lit(1.0)).otherwise(margin)


def fit_regression(train: DataFrame, features: tuple[str, ...], label: str = "label") -> LinearPredictor:
    """Least squares of the label on the features, clipped to [0, 1].

    Parameters
    ----------
    train : DataFrame
        ``features`` without nulls, none of them constant; ``label`` in [0, 1].
    """
    coefficients, intercept = _least_squares(_assembled(train, features), label)
    return LinearPredictor(features, tuple(coefficients.tolist()), intercept, "clip")


def fit_svm(train: DataFrame, features: tuple[str, ...], label: str = "label") -> LinearPredictor:
    """Linear support vector machine with squared hinge loss; the score is a sigmoid of its margin.

    This is the machine of scikit-learn's ``LinearSVC``, without its (at these sizes negligible) penalty.
    Spark's own ``LinearSVC`` minimises the plain hinge, whose margins are several times as wide and whose
    sigmoid is nearly calibrated: not the predictor that the paper sets out to repair. The squared hinge is
    least squares on the rows inside the margin, so Newton's method is a short sequence of Spark ML
    regressions (Chapelle, "Training a support vector machine in the primal", 2007).

    Parameters
    ----------
    train : DataFrame
        ``features`` without nulls, none of them constant; ``label`` 0 or 1, both present. Read once a step:
        persist it.
    """
    rows = _assembled(train, features).withColumn("side", sf.col(label) * 2 - 1)
    coefficients, intercept = _least_squares(rows, "side")
    for step in range(_MAX_STEPS):
        here = LinearPredictor(features, tuple(coefficients.tolist()), intercept, "sigmoid")
        inside = rows.where(sf.col("side") * here.margin() < 1)
        if inside.count() <= len(features) + 1:
            log.warning("svm_separable", steps=step, message="hardly a row is inside the margin")
            return here
        new_coefficients, new_intercept = _least_squares(inside, "side")
        moved = np.append(new_coefficients - coefficients, new_intercept - intercept)
        size = np.append(new_coefficients, new_intercept)
        coefficients, intercept = new_coefficients, new_intercept
        if np.all(np.abs(moved) <= _SETTLED * np.abs(size)):
            return LinearPredictor(features, tuple(coefficients.tolist()), intercept, "sigmoid")
    log.warning("svm_not_settled", steps=_MAX_STEPS)
    return LinearPredictor(features, tuple(coefficients.tolist()), intercept, "sigmoid")


def _assembled(train: DataFrame, features: tuple[str, ...]) -> DataFrame:
    return VectorAssembler(inputCols=list(features), outputCol="features").transform(train)


def _least_squares(
    rows: DataFrame, target: str
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], float]:
    """Exact solution of the normal equations, so that it does not depend on the partitioning."""
    model = LinearRegression(featuresCol="features", labelCol=target, solver="normal", regParam=0.0).fit(rows)
    return np.asarray(model.coefficients.toArray(), dtype=np.float64), float(model.intercept)

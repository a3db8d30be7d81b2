from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from sklearn.linear_model import LinearRegression
from sklearn.svm import LinearSVC

from mcspark.acs.base_predictor import LinearPredictor, fit_regression, fit_svm

FEATURES = ("a", "b", "c")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2_000, 3)) * [1.0, 20.0, 4_000.0] + [0.0, 40.0, 5_000.0]
    linear = 0.3 * x[:, 0] + 0.02 * (x[:, 1] - 40) - 5e-5 * (x[:, 2] - 5_000)
    return pd.DataFrame(x, columns=FEATURES).assign(
        real=np.clip(0.5 + 0.6 * linear + rng.normal(size=2_000) * 0.2, 0, 1),
        binary=(linear + rng.normal(size=2_000) * 0.5 > 0.1).astype(float),
    )


def scores(frame: DataFrame, predictor: LinearPredictor) -> np.ndarray:
    return np.array([row[0] for row in frame.select(predictor.score()).collect()])


def test_regression_is_least_squares_clipped(spark: SparkSession, table: pd.DataFrame) -> None:
    frame = spark.createDataFrame(table)
    oracle = LinearRegression().fit(table[[*FEATURES]], table["real"])
    expected = np.clip(oracle.predict(table[[*FEATURES]]), 0, 1)
    assert (expected == 0).any()
    assert (expected == 1).any()
    np.testing.assert_allclose(scores(frame, fit_regression(frame, FEATURES, "real")), expected, atol=1e-10)


def test_svm_is_scikit_learns_behind_a_sigmoid(spark: SparkSession, table: pd.DataFrame) -> None:
    frame = spark.createDataFrame(table)
    x = (table[[*FEATURES]] - table[[*FEATURES]].mean()) / table[[*FEATURES]].std()
    oracle = LinearSVC(C=1e4, dual=False, tol=1e-10, intercept_scaling=1e3, max_iter=100_000)
    margin = oracle.fit(x, table["binary"]).decision_function(x)
    expected = 1 / (1 + np.exp(-margin))
    np.testing.assert_allclose(scores(frame, fit_svm(frame, FEATURES, "binary")), expected, atol=1e-4)


def test_partitioning_does_not_matter(spark: SparkSession, table: pd.DataFrame) -> None:
    frame = spark.createDataFrame(table)
    one = fit_svm(frame.coalesce(1), FEATURES, "binary")
    many = fit_svm(frame.repartition(7), FEATURES, "binary")
    np.testing.assert_allclose(one.coefficients, many.coefficients, rtol=1e-9)
    assert one.intercept == pytest.approx(many.intercept, rel=1e-9)


def test_separable_classes_end_with_a_machine_that_tells_them_apart(
    spark: SparkSession, table: pd.DataFrame
) -> None:
    table = table.assign(binary=(table["a"] > 0).astype(float), a=table["a"] + np.sign(table["a"]))
    frame = spark.createDataFrame(table)
    score = scores(frame, fit_svm(frame, FEATURES, "binary"))
    assert ((score > 0.5) == (table["binary"] == 1)).all()
    assert np.isfinite(score).all()

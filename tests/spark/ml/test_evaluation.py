"""The evaluator against sums over rows in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import functions as F
from sklearn.metrics import log_loss, roc_auc_score

from mcspark import GroupSet, MulticalibrationEvaluator
from mcspark.core.metrics.calibration_error import calibration_error, multiaccuracy_error
from mcspark.core.metrics.smooth_ece import smooth_ece
from mcspark.errors import ContractError

from .conftest import SECTION, membership


def discretized(score, m):
    edges = np.arange(m + 1) / m
    return (2 * np.minimum(np.searchsorted(edges, score, "right") - 1, m - 1) + 1) / (2 * m)


def evaluate(frame, **settings):
    return MulticalibrationEvaluator(groups=SECTION, **settings).evaluate(frame)


@pytest.mark.parametrize("m", [7, 20, 100])
@pytest.mark.parametrize("weight", [None, "w"])
def test_errors_are_those_of_the_rows(people, people_frame, m, weight):
    values = discretized(people["score"].to_numpy(), m)
    rows = values, people["label"].to_numpy(), membership(people)
    w = None if weight is None else people[weight].to_numpy()
    settings = {"levels": m, "weightCol": weight, "predictionCol": "score"}
    assert evaluate(people_frame, **settings) == pytest.approx(calibration_error(*rows, w).max(), abs=1e-12)
    if m == 20:
        ma = evaluate(people_frame, **settings, metricName="ma_error")
        assert ma == pytest.approx(multiaccuracy_error(*rows, w).max(), abs=1e-12)


def test_loss_and_smooth_ece_are_of_the_score_itself(people, people_frame):
    settings = {"weightCol": "w", "predictionCol": "score"}
    expected = np.average((people["score"] - people["label"]) ** 2, weights=people["w"])
    assert evaluate(people_frame, **settings, metricName="loss") == pytest.approx(expected, abs=1e-12)
    worst = max(
        smooth_ece(people["score"][g].to_numpy(), people["label"][g].to_numpy(), people["w"][g].to_numpy())
        for g in membership(people).T
    )
    found = evaluate(people_frame, **settings, metricName="worst_group_smece")
    assert found == pytest.approx(worst, abs=5e-4)


def test_smaller_is_better_after_calibration(fitted):
    test = fitted.model.transform(fitted.frame).where("split = 'test'")
    before, after = (evaluate(test, weightCol="w", predictionCol=c) for c in ("score", "calibrated_score"))
    assert after < before * 0.7
    evaluator = MulticalibrationEvaluator(groups=fitted.model.fitted, weightCol="w")
    assert evaluator.evaluate(test) == pytest.approx(after, abs=1e-12)
    assert not evaluator.isLargerBetter()
    assert evaluator.evaluate(test, {evaluator.predictionCol: "score"}) == pytest.approx(before, abs=1e-12)


def test_metrics_of_the_score_itself_are_scikit_learns(people_frame):
    rows = people_frame.toPandas()
    found = evaluate(people_frame, predictionCol="score", metricName="auc")
    assert found == pytest.approx(roc_auc_score(rows["label"], rows["score"]), abs=1e-4)
    assert MulticalibrationEvaluator(groups=GroupSet.from_config(SECTION), metricName="auc").isLargerBetter()
    found = evaluate(people_frame, predictionCol="score", metricName="log_loss")
    assert found == pytest.approx(log_loss(rows["label"], rows["score"]), abs=1e-4)


def test_rows_without_a_label_are_left_out(people_frame):
    part = people_frame.withColumn("label", F.when(F.col("id") % 2 == 0, F.col("label")))
    kept = people_frame.where("id % 2 = 0")
    one, other = (evaluate(f, predictionCol="score") for f in (part, kept))
    assert one == other


def test_what_cannot_be_measured_is_refused(people_frame):
    with pytest.raises(ContractError, match="score"):
        evaluate(people_frame.withColumn("score", F.lit(1.5)), predictionCol="score")
    with pytest.raises(ContractError, match="lacks"):
        evaluate(people_frame)
    with pytest.raises(ValueError, match="metricName"):
        MulticalibrationEvaluator(groups=GroupSet.from_config(SECTION), metricName="ecce_p_value")

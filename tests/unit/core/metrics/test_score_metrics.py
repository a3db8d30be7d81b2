"""Metrics of the score itself, beside scikit-learn and sums over rows in the order of their scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.isotonic import IsotonicRegression

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.cumulative import DETECTABLE, range_survival
from mcspark.core.metrics.score_metrics import SCORE_METRICS, score_metrics

BINS = ScoreBins(300, (2,) * 300)


def rows(n=4000, seed=3, *, digits=None, wrong=0.05):
    """Scores, labels that are off by ``wrong`` where the score is high, weights, two groups."""
    rng = np.random.default_rng(seed)
    score = rng.beta(1.2, 3.0, n) if digits is None else np.round(rng.beta(1.2, 3.0, n), digits)
    label = (rng.random(n) < np.clip(score + wrong * (score > 0.3), 0, 1)).astype(float)
    return score, label, rng.exponential(size=n) + 0.05, rng.random((n, 2)) < [0.4, 0.7]


def measured(score, label, weight=None, member=None, min_rows=1, bins=BINS):
    member = np.ones((len(score), 1), dtype=bool) if member is None else member
    cells = Cells.from_rows(score, label, member, bins=bins, weight=weight)
    return {key: found.value for key, found in score_metrics(cells, min_rows).items()}


def test_scores_of_two_decimals_get_what_scikit_learn_gets():
    score, label, weight, member = rows(digits=2)
    found = measured(score, label, weight, member)
    assert found["loss"] == pytest.approx(sk.brier_score_loss(label, score, sample_weight=weight), abs=1e-12)
    assert found["log_loss"] == pytest.approx(sk.log_loss(label, score, sample_weight=weight), rel=1e-9)
    assert found["auc"] == pytest.approx(sk.roc_auc_score(label, score, sample_weight=weight), abs=1e-12)
    precision = sk.average_precision_score(label, score, sample_weight=weight)
    assert found["pr_auc"] == pytest.approx(precision, abs=1e-12)
    isotonic = IsotonicRegression().fit(score, label, sample_weight=weight).predict(score)
    refinement = np.average((isotonic - label) ** 2, weights=weight)
    assert found["brier_refinement"] == pytest.approx(refinement, abs=1e-12)
    assert found["brier_calibration"] == pytest.approx(found["loss"] - refinement, abs=1e-12)


def test_scores_of_many_digits_differ_by_the_width_of_a_bin_at_most():
    score, label, weight, _ = rows()
    found = measured(score, label, weight)
    assert found["log_loss"] == pytest.approx(sk.log_loss(label, score, sample_weight=weight), abs=2e-4)
    assert found["auc"] == pytest.approx(sk.roc_auc_score(label, score, sample_weight=weight), abs=1e-4)
    precision = sk.average_precision_score(label, score, sample_weight=weight)
    assert found["pr_auc"] == pytest.approx(precision, abs=2e-3)
    isotonic = IsotonicRegression().fit(score, label, sample_weight=weight).predict(score)
    refinement = np.average((isotonic - label) ** 2, weights=weight)
    assert found["brier_refinement"] == pytest.approx(refinement, abs=5e-4)


def test_equal_scores_are_ties_in_whatever_groups_and_sums():
    # A third of three groups each: sums of 0.3 in groups of other sizes differ in their last bits.
    score = np.tile([0.3, 0.7], 300)
    label = (np.arange(600) % 5 < 2).astype(float)
    member = np.arange(600)[:, None] % 7 == np.arange(7)
    found = measured(score, label, np.linspace(0.1, 1.3, 600), member)
    assert found["auc"] == pytest.approx(
        sk.roc_auc_score(label, score, sample_weight=np.linspace(0.1, 1.3, 600)), abs=1e-12
    )


def test_a_label_between_0_and_1_is_a_positive_and_a_negative_row_in_parts():
    score, label = np.array([0.2, 0.4, 0.9]), np.array([0.25, 0.5, 0.75])
    twice = np.repeat(score, 2), np.tile([1.0, 0.0], 3)
    weight = np.stack([label, 1 - label], axis=1).reshape(-1)
    parts, whole = measured(*twice, weight), measured(score, label)
    for key in ("auc", "pr_auc", "log_loss", "ecce", "atb"):
        assert whole[key] == pytest.approx(parts[key], abs=1e-12), key


def test_a_confident_error_costs_what_it_does_in_scikit_learn():
    found = measured(np.array([0.0, 1.0, 0.5]), np.array([1.0, 0.0, 1.0]))
    assert found["log_loss"] == pytest.approx(sk.log_loss([1, 0, 1], [0.0, 1.0, 0.5]), rel=1e-9)


def test_ecce_is_the_largest_error_over_any_interval_of_scores():
    score, label, weight, _ = rows(300, digits=1, wrong=0.2)
    ends = np.linspace(0, 1.1, 12) - 0.05
    errors = [
        abs((weight * (score - label))[(score > low) & (score < high)].sum()) / weight.sum()
        for low, high in itertools.combinations(ends, 2)
    ]
    found = measured(score, label, weight)
    assert found["ecce"] == pytest.approx(max(errors), abs=1e-12)
    sigma = np.sqrt((weight**2 * score * (1 - score)).sum()) / weight.sum()
    assert found["ecce_sigma"] == pytest.approx(max(errors) / sigma, rel=1e-9)
    assert found["ecce_detectable"] == pytest.approx(DETECTABLE * sigma, rel=1e-9)


def test_atb_is_the_mean_of_two_squared_errors_over_the_threshold():
    score, label, weight, _ = rows(200)
    share = weight * (score - label) / weight.sum()
    thresholds = (np.arange(20_000) + 0.5) / 20_000
    below = np.array([share[score < t].sum() for t in thresholds])
    wanted = (below**2 + (share.sum() - below) ** 2).mean()
    assert measured(score, label, weight)["atb"] == pytest.approx(wanted, rel=1e-3)


def test_the_true_probabilities_have_the_lowest_atb_in_expectation():
    rng = np.random.default_rng(5)
    truth = rng.beta(2, 2, 400)
    drawn = [(rng.random(400) < truth).astype(float) for _ in range(300)]
    means = [
        np.mean([measured(np.clip(said, 0, 1), label)["atb"] for label in drawn])
        for said in (truth, 0.5 + 0.9 * (truth - 0.5), truth + 0.01, np.full(400, 0.53))
    ]
    assert means[0] == min(means)


@pytest.mark.parametrize("weighted", [False, True])
def test_p_values_of_a_calibrated_score_are_uniform(weighted):
    rng = np.random.default_rng(11)
    found = []
    for _ in range(400):
        score, weight = rng.beta(1, 4, 2000), rng.exponential(size=2000) if weighted else None
        found.append(measured(score, (rng.random(2000) < score).astype(float), weight)["ecce_p_value"])
    for level in (0.05, 0.2, 0.5):
        share = np.mean(np.array(found) <= level)
        assert abs(share - level) < 3.5 * np.sqrt(level * (1 - level) / 400) + 0.02, (level, share)


def test_the_range_of_a_brownian_motion_has_fellers_distribution():
    values = np.linspace(1e-3, 12, 40_001)
    survival = np.array([range_survival(v) for v in values])
    assert np.all(np.diff(survival) <= 1e-12)
    assert survival[0] == 1.0
    # Its mean is √(8/π), its second moment 4 ln 2.
    assert np.trapz(survival, values) == pytest.approx(np.sqrt(8 / np.pi), abs=2e-3)
    assert np.trapz(2 * values * survival, values) == pytest.approx(4 * np.log(2), abs=2e-3)
    assert range_survival(DETECTABLE) == pytest.approx(0.05, abs=1e-6)


def test_the_worst_group_is_that_with_the_most_surprising_error():
    score, label, weight, member = rows(wrong=0.0)
    label = np.where(member[:, 1] & (score > 0.2), 1.0, label)
    member = np.column_stack([member, np.arange(len(score)) < 3])
    cells = Cells.from_rows(score, label, member, bins=BINS, weight=weight, groups=("A", "B", "tiny"))
    found = score_metrics(cells, min_rows=10)["worst_group_ecce_sigma"]
    assert found.group == "B"
    inside = member[:, 1]
    alone = measured(score[inside], label[inside], weight[inside])["ecce_sigma"]
    assert found.value == pytest.approx(alone, rel=1e-4)  # chance is summed at the means of cells


@pytest.mark.parametrize(
    ("score", "label", "weight"),
    [
        (np.array([0.2, 0.7]), np.array([0.0, 1.0]), np.zeros(2)),
        (np.array([0.0, 1.0]), np.array([0.0, 1.0]), None),
        (np.array([0.3]), np.array([1.0]), None),
        (np.array([0.3, 0.3]), np.array([0.0, 0.0]), None),
        (np.array([5e-324, 1.0]), np.array([1.0, 1.0]), np.array([1e-9, 1e9])),
    ],
)
def test_what_is_not_defined_is_none_and_nothing_else_is_not_finite(score, label, weight):
    found = measured(score, label, weight)
    assert set(found) == {metric.key for metric in SCORE_METRICS}
    assert all(value is None or np.isfinite(value) for value in found.values())
    if weight is not None and not weight.any():
        assert set(found.values()) == {None}
    if len(set(label)) == 1:
        assert found["auc"] is None

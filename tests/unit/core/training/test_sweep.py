"""Sweeps on cells, against the same thing done on rows."""

from dataclasses import replace

import numpy as np
import pytest
from miscalibrated import applied
from official_trainer import official
from sklearn.linear_model import Lasso, LinearRegression

from mcspark.core.baselines.lsboost import fit_lsboost
from mcspark.core.baselines.mcboost import fit_mcboost
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import ScoreBins, level_index, level_value
from mcspark.core.metrics.calibration_error import calibration_error, level_errors
from mcspark.core.model.stages import Stages
from mcspark.core.training.rounds import check_saturation, fit_stages
from mcspark.core.training.sweep import BUCKETS, PAPER_GRIDS, Sweep, Trial, recalibrated
from mcspark.core.training.training_table import TreeSettings

FAST = TreeSettings(learning_rate=0.3, max_trees=40, early_stopping_rounds=10)
BINS = ScoreBins(60, (2,) * 60)
N = 4000


def population(seed=3):
    rng = np.random.default_rng(seed)
    member = rng.random((N, 4)) < [0.5, 0.3, 0.2, 0.1]
    # Scores in the middles of fine bins: a cell then holds rows of one score, and cells lose nothing.
    score = (rng.integers(0, 480, N) + 0.5) / 480
    truth = np.clip(score + 0.2 * member[:, 0] - 0.25 * member[:, 1] * (score > 0.5), 0, 1)
    label = (rng.random(N) < truth).astype(float)
    test = rng.random(N) < 0.4
    return score, label, member, rng.integers(0, BUCKETS, N), test


@pytest.fixture(scope="module")
def rows():
    return population()


@pytest.fixture(scope="module")
def sweep(rows):
    score, label, member, bucket, test = rows
    bins = ScoreBins(60, (3,) * 60)
    learning = Cells.from_rows(score[~test], label[~test], member[~test], bins=bins, role=bucket[~test])
    held_out = Cells.from_rows(
        score[test], label[test], member[test], bins=ScoreBins(60, (4,) * 60), role=np.full(test.sum(), 2)
    )
    return Sweep(learning, held_out, (10, 20), 11, 0.3, FAST)


def bucket_roles(sweep, partition, share=None):
    """Role of each bucket, told from the halves' row counts by group of buckets."""
    calibration, validation = sweep.parts(partition, share)
    n = np.bincount(sweep.learning.role, weights=sweep.learning.n, minlength=BUCKETS)
    return calibration, validation, n


def test_a_partition_takes_every_row_once(sweep):
    calibration, validation, n = bucket_roles(sweep, 0)
    assert calibration.n.sum() + validation.n.sum() == n.sum()
    assert set(np.unique(calibration.role)) == {Role.fit, Role.early_stopping}
    for name in ("weight", "label", "score", "score_sq", "label_sq", "score_label"):
        total = getattr(calibration, name).sum() + getattr(validation, name).sum()
        assert total == pytest.approx(getattr(sweep.learning, name).sum(), rel=1e-12)


def test_halves_are_of_ten_buckets_and_shares_of_whole_buckets(sweep):
    # One row a bucket: counts are then numbers of buckets.
    one = Cells.from_rows(
        np.full(BUCKETS, 0.5), np.zeros(BUCKETS), np.ones((BUCKETS, 1), bool), bins=BINS,
        role=np.arange(BUCKETS),
    )  # fmt: skip
    alone = replace(sweep, learning=one)
    for share, stops in ((None, 3), (0.1, 1), (0.2, 2), (0.5, 5), (0.001, 1), (0.999, 9)):
        calibration, validation = alone.parts(4, share)
        assert validation.n.sum() == 10
        assert calibration.of_role(Role.early_stopping).n.sum() == stops
        assert calibration.of_role(Role.fit).n.sum() == 10 - stops


def test_partitions_differ_and_repeat(sweep):
    halves = [sweep.parts(k)[0].n.sum() for k in range(6)]
    assert len(set(halves)) > 1
    assert [sweep.parts(k)[0].n.sum() for k in range(6)] == halves
    assert [replace(sweep, seed=12).parts(k)[0].n.sum() for k in range(6)] != halves


def test_another_stopping_share_keeps_the_halves(sweep):
    one, other = (sweep.parts(2, share)[1] for share in (0.1, 0.5))
    np.testing.assert_array_equal(one.label, other.label)


def test_merging_sums_what_has_one_key(rows):
    score, label, member, bucket, _ = rows
    apart = Cells.from_rows(score, label, member, bins=BINS, role=bucket)
    once = Cells.from_rows(score, label, member, bins=BINS, role=bucket % 2)
    found = replace(apart, role=apart.role % 2).merged(apart.bin)
    assert len(found) == len(once) < len(apart)
    order = [np.lexsort((c.bin, c.signature, c.role)) for c in (found, once)]
    for name in ("n", "weight", "score", "label", "score_label"):
        np.testing.assert_allclose(getattr(found, name)[order[0]], getattr(once, name)[order[1]], rtol=1e-12)


def moved_rows(sweep, rows, calibrator):
    score, label, member, _, test = rows
    return applied(calibrator, score[test], member[test]), label[test], member[test]


@pytest.mark.parametrize(
    ("method", "setting", "m"),
    [
        ("none", (), None),
        ("multiaccurate", (("penalty", 1e-3),), None),
        ("trees", (("learning_rate", 0.3), ("feature_fraction", 1.0)), None),
        ("squarelev", (), None),
        ("mcboost", (("early_stopping", 0.2),), 10),
        ("lsboost", (("depth", 2), ("learning_rate", 1.0), ("subsample", 0.5)), 10),
        ("isotonic", (("by_group", 1),), None),
        ("platt", (("by_group", 0),), None),
    ],
)
def test_reported_metrics_are_those_of_the_test_rows(sweep, rows, method, setting, m):
    trial = Trial(method, setting, m, 1)
    calibrator, _, _ = sweep.fit(trial, official)
    value, label, member = moved_rows(sweep, rows, calibrator)
    found = {(name, grid): number for name, grid, number in sweep.report(trial, official)}
    for grid in (10, 20) if m is None else (m,):
        discrete = level_value(level_index(value, grid), grid)
        wanted = calibration_error(discrete, label, member).max()
        assert found["mc_error", grid] == pytest.approx(wanted, abs=1e-12)
        assert found["level_sets", grid] == len(np.unique(discrete))
        assert found["loss", grid] == pytest.approx(np.mean((discrete - label) ** 2), rel=1e-12)
        rng = np.random.default_rng(0)
        drawn = [
            calibration_error(discrete, (rng.random(len(value)) < value) * 1.0, member).max()
            for _ in range(300)
        ]
        assert found["noise_floor", grid] == pytest.approx(np.mean(drawn), rel=0.1)
        before = np.bincount(level_index(rows[0][rows[4]], grid)) / rows[4].sum()
        assert found["fullest_level_share", grid] == pytest.approx(before.max(), abs=1e-12)
        assert found["fullest_level", grid] == before.argmax()
    gap = np.abs((value - label) @ member).max() / len(value)
    assert found["score_ma_error", m] == pytest.approx(gap, abs=1e-9)
    if m is None:
        assert found["loss", None] == pytest.approx(np.mean((value - label) ** 2), rel=1e-12)
    else:
        assert ("mc_error", 20) not in found


def test_trees_are_chosen_by_validation_loss_and_mcboost_by_validation_error(sweep):
    trial = Trial("trees", (("learning_rate", 0.3), ("feature_fraction", 0.5)), None, 0)
    calibrator, _, validation = sweep.fit(trial, official)
    after = recalibrated(validation, calibrator)
    assert sweep.validate(trial, official) == pytest.approx(after.loss(), rel=1e-12)
    assert after.loss() < validation.loss()
    trial = Trial("mcboost", (("early_stopping", 0.3),), 20, 0)
    calibrator, _, validation = sweep.fit(trial, official)
    error = level_errors(recalibrated(validation, calibrator), 20).mc_error
    assert sweep.validate(trial, official) == pytest.approx(error, rel=1e-12)


def test_a_setting_is_chosen_by_the_loss_where_the_grid_is_blind(rows):
    score, label, member, bucket, _ = rows
    cells = Cells.from_rows(score / 20, label, member, bins=BINS, role=bucket)
    trial = Trial("mcboost", (("early_stopping", 0.3),), 20, 0)
    blind = Sweep(cells, cells, (10, 20), 11, 0.3, FAST)
    calibrator, _, validation = blind.fit(trial, official)
    after = recalibrated(validation, calibrator)
    assert blind.validate(trial, official) == after.loss() != level_errors(after, 20).mc_error


def test_a_trial_fits_what_its_setting_says(sweep):
    setting = (("learning_rate", 0.1), ("feature_fraction", 0.4))
    found, calibration, _ = sweep.fit(Trial("trees", setting, None, 3), official)
    wanted = fit_stages(calibration, replace(FAST, learning_rate=0.1, feature_fraction=0.4), official)
    assert found.to_dict() == wanted.stages.to_dict()
    tight = replace(sweep, settings={"mcboost": {"max_patches": 2}, "lsboost": {"max_rounds": 1}})
    found, calibration, _ = tight.fit(Trial("mcboost", (("early_stopping", 0.4),), 20, 3), official)
    parts = calibration.of_role(Role.fit), calibration.of_role(Role.early_stopping)
    assert found.to_dict() == fit_mcboost(*parts, 20, max_patches=2).to_dict()
    setting = (("depth", 2), ("learning_rate", 0.3), ("subsample", 0.7))
    found, calibration, _ = tight.fit(Trial("lsboost", setting, 10, 3), official)
    parts = calibration.of_role(Role.fit), calibration.of_role(Role.early_stopping)
    wanted = fit_lsboost(*parts, 10, depth=2, learning_rate=0.3, subsample=0.7, seed=1, max_rounds=1)
    assert found.to_dict() == wanted.to_dict()


@pytest.mark.parametrize("penalty", [0.0, 1e-3])
def test_multiaccuracy_fits_the_whole_half(sweep, rows, penalty):
    found, _, _ = sweep.fit(Trial("multiaccurate", (("penalty", penalty),), None, 0), official)
    score, label, member, bucket, test = rows
    order = np.random.default_rng([sweep.seed, 0]).permutation(BUCKETS)
    half = ~test & np.isin(bucket, order[:10])
    model = Lasso(alpha=penalty, tol=1e-12, max_iter=100_000) if penalty else LinearRegression()
    model.fit(member[half].astype(float), (label - score)[half])
    np.testing.assert_allclose(found.coefficient, model.coef_, atol=1e-6)


def test_the_second_pass_is_that_of_one_table_of_cells(sweep, rows):
    trial = Trial("trees", (("learning_rate", 0.3), ("feature_fraction", 1.0)), None, 0)
    calibrator, calibration, _ = sweep.fit(trial, official)
    assert isinstance(calibrator, Stages)
    score, label, member, bucket, test = rows
    order = np.random.default_rng([sweep.seed, 0]).permutation(BUCKETS)
    role = np.full(N, -1)
    role[np.isin(bucket, order[:10])] = Role.fit
    role[np.isin(bucket, order[:3])] = Role.early_stopping
    role[test] = Role.test
    used = role >= 0
    whole = Cells.from_rows(score[used], label[used], member[used], bins=calibration.bins, role=role[used])
    wanted = check_saturation(whole, calibrator, FAST, official)
    found = {(name, m): v for name, m, v in sweep.report(trial, official)}
    assert found["loss_second", None] == pytest.approx(wanted.loss_second, rel=1e-9)
    assert found["loss_second", None] != found["loss", None]


def test_the_grids_are_the_papers():
    assert {name: len(grid) for name, grid in PAPER_GRIDS.items()} == {
        "none": 1, "multiaccurate": 6, "mcboost": 5, "lsboost": 60, "squarelev": 1, "trees": 50,
        "calibrated_multiaccuracy": 6,
        **dict.fromkeys(("isotonic", "platt", "temperature"), 2),  # pooled, or by group: the field's
    }  # fmt: skip
    rates = sorted({dict(s)["learning_rate"] for s in PAPER_GRIDS["trees"]})
    np.testing.assert_allclose(rates, np.logspace(-2, 0, 5))
    fractions = sorted({dict(s)["feature_fraction"] for s in PAPER_GRIDS["trees"]})
    np.testing.assert_allclose(fractions, np.linspace(0.1, 1, 10))


def test_only_discrete_methods_are_fitted_for_every_grid(sweep):
    assert sweep.grids("mcboost") == sweep.grids("lsboost") == (10, 20)
    assert sweep.grids("trees") == sweep.grids("multiaccurate") == (None,)
    with pytest.raises(ValueError, match="needs a grid m"):
        sweep.fit(Trial("mcboost", (("early_stopping", 0.2),), None, 0), official)
    with pytest.raises(ValueError, match="unknown method 'forest'"):
        sweep.fit(Trial("forest", (), None, 0), official)

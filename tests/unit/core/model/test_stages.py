from __future__ import annotations

import json

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from lightgbm_models import features, population, train
from scipy.special import expit
from scipy.special import logit as scipy_logit

from mcspark.core.model.additive import AdditiveForm
from mcspark.core.model.lightgbm_text import parse_trees
from mcspark.core.model.stages import LOGIT_EPS, SignatureScorer, Stage, Stages, corrected, logit, sigmoid

N_GROUPS = 6
NAMES = tuple("abcdef")


def stage_of(booster: lgb.Booster, link: str) -> Stage:
    trees = parse_trees(booster.model_to_string())
    return Stage(link, AdditiveForm.from_trees(trees, N_GROUPS), len(trees))


@pytest.fixture(scope="module")
def boosters() -> list[lgb.Booster]:
    """Two ensembles; the second is trained with the first one's output as its score."""
    score, member, residual = population(4000, N_GROUPS)
    first = train(features(score, member), residual, 150, learning_rate=0.3)
    then = np.clip(score + first.predict(features(score, member)), 0, 1)
    return [first, train(features(then, member), residual - then + score, 80)]


@pytest.fixture(scope="module")
def two_stages(boosters) -> Stages:
    return Stages(tuple(stage_of(booster, "identity") for booster in boosters), NAMES)


@pytest.fixture(scope="module")
def mixed_stages(boosters) -> Stages:
    return Stages((stage_of(boosters[0], "logit"), stage_of(boosters[1], "identity")), NAMES)


@pytest.fixture(scope="module")
def rows(two_stages) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, signatures, and the table of all signatures, the empty and the full one among them."""
    rng = np.random.default_rng(2)
    edges = np.concatenate([stage.form.thresholds for stage in two_stages.stages])
    score = np.concatenate(
        [rng.random(40_000), edges, np.nextafter(edges, 0), np.nextafter(edges, 1), [0.0, -0.0, 1.0]]
    )
    score = np.clip(score, 0, 1)
    table = rng.permutation((np.arange(2**N_GROUPS)[:, None] >> np.arange(N_GROUPS)) % 2 == 1)
    return score, rng.integers(0, len(table), len(score)), table


def test_two_stages_are_the_two_boosters_one_after_the_other(boosters, two_stages, rows):
    score, signature, table = rows
    member = table[signature]
    # A score that differs in its last digit may fall on the other side of a threshold of the second stage,
    # so both are fed the same.
    current = score
    for booster, stage in zip(boosters, two_stages.stages, strict=True):
        expected = np.clip(current + booster.predict(features(current, member)), 0, 1)
        current = stage.apply(current, member)
        np.testing.assert_allclose(current, expected, rtol=0, atol=1e-12)
    assert np.array_equal(two_stages.apply(score, member), current)
    assert two_stages.trees == 230


def test_the_logit_link_is_the_booster_on_log_odds(boosters, rows):
    score, signature, table = rows
    member = table[signature]
    stages = Stages((stage_of(boosters[0], "logit"),), NAMES)
    start = scipy_logit(np.clip(score, LOGIT_EPS, 1 - LOGIT_EPS))
    expected = expit(start + boosters[0].predict(features(score, member)))
    np.testing.assert_allclose(stages.apply(score, member), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("which", ["two_stages", "mixed_stages"])
def test_the_fast_path_equals_the_plain_one(which, rows, request):
    stages, (score, signature, table) = request.getfixturevalue(which), rows
    fast = stages.apply_signatures(score, signature, table)
    np.testing.assert_allclose(fast, stages.apply(score, table[signature]), rtol=0, atol=1e-15)
    assert fast.min() >= 0
    assert fast.max() <= 1


@pytest.mark.parametrize("which", ["two_stages", "mixed_stages"])
def test_a_row_scores_the_same_in_any_batch(which, rows, request):
    stages, (score, signature, table) = request.getfixturevalue(which), rows
    scorer = SignatureScorer(stages, table)
    whole = scorer(score, signature)
    pieces = np.array_split(np.random.default_rng(0).permutation(len(score)), 97)
    for piece in [*pieces, *np.arange(50)[:, None]]:
        assert np.array_equal(scorer(score[piece], signature[piece]), whole[piece])
    # Only the signatures of the batch, in another order, are in the table: still the same bits.
    few = pieces[0][:40]
    used, own = np.unique(signature[few], return_inverse=True)
    backwards = len(used) - 1 - own
    assert np.array_equal(stages.apply_signatures(score[few], backwards, table[used][::-1]), whole[few])
    assert np.array_equal(stages.apply_signatures(score[few], own.astype(np.int32), table[used]), whole[few])


def test_no_stage_is_the_identity(rows):
    score, signature, table = rows
    none = Stages((), NAMES)
    assert np.array_equal(none.apply(score, table[signature]), score)
    assert np.array_equal(none.apply_signatures(score, signature, table), score)
    assert none.trees == 0


def test_a_zero_correction_leaves_the_score_alone():
    score, member = np.linspace(0, 1, 101), np.zeros((101, 2), dtype=bool)
    for link in ("identity", "logit"):
        stages = Stages((), ("a", "b")).then(Stage(link, AdditiveForm.zero(2), 0))
        np.testing.assert_allclose(stages.apply(score, member), score, rtol=0, atol=1.01 * LOGIT_EPS)


def test_no_row_and_no_group():
    form = AdditiveForm(np.array([0.5]), 0.0, np.array([0.1, -0.1]), np.zeros((0, 2)), *empty_pairs())
    stages = Stages((Stage("identity", form, 1),), ())
    score = np.array([0.0, 0.5, 0.75])
    expected = [0.1, 0.6, 0.65]
    table = np.zeros((1, 0), dtype=bool)
    assert np.array_equal(stages.apply(score, np.zeros((3, 0), dtype=bool)), expected)
    assert np.array_equal(stages.apply_signatures(score, np.zeros(3, dtype=np.int64), table), expected)
    assert len(stages.apply_signatures(np.zeros(0), np.zeros(0, dtype=np.int64), table[:0])) == 0


def empty_pairs() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((0, 2), dtype=np.int64), np.zeros(0)


@settings(max_examples=200, deadline=None)
@given(
    hnp.arrays(np.float64, st.integers(0, 60), elements=st.floats(-0.2, 1.2), unique=True),
    st.sampled_from([1.0, 1e-2, 1e-4, 1e-9]),
    st.lists(st.floats(0, 1), max_size=20),
)
def test_the_look_up_finds_the_bin_of_a_bisection(thresholds, width, scores):
    """Also where thresholds crowd together, so that the grid gives way to bisection."""
    thresholds = np.unique(0.3 + (thresholds - 0.3) * width)
    form = AdditiveForm(
        thresholds,
        0.0,
        np.arange(len(thresholds) + 1) / 64,
        np.zeros((0, len(thresholds) + 1)),
        *empty_pairs(),
    )
    near = np.concatenate(
        [thresholds, np.nextafter(thresholds, -9), np.nextafter(thresholds, 9), [0.0, -0.0, 1.0]]
    )
    score = np.concatenate([near[(near >= 0) & (near <= 1)], scores])
    fast = Stages((Stage("identity", form, 1),), ()).apply_signatures(
        score, np.zeros(len(score), dtype=np.int64), np.zeros((1, 0), dtype=bool)
    )
    below = (thresholds[None, :] < score[:, None]).sum(axis=1)
    assert np.array_equal(fast, np.clip(score + below / 64, 0, 1))


def test_link_functions_agree_with_scipy_and_keep_to_the_unit_interval():
    odds = np.concatenate([np.linspace(-40, 40, 401), [-1e6, 1e6, -745.0, 745.0, 0.0, -0.0]])
    with np.errstate(all="raise", under="ignore"):
        ours = sigmoid(odds)
    np.testing.assert_allclose(ours, expit(odds), rtol=1e-15, atol=1e-300)
    score = np.linspace(0.001, 0.999, 999)
    np.testing.assert_allclose(logit(score), scipy_logit(score), rtol=1e-13, atol=1e-15)
    assert logit(np.array([0.0, 1.0])).tolist() == pytest.approx([-13.815510, 13.815510])
    assert corrected(np.array([0.2, 0.9]), np.array([-0.5, 0.5]), "identity").tolist() == [0.0, 1.0]


@pytest.mark.parametrize("bad", [np.nan, -1e-9, 1 + 1e-9, np.inf])
def test_scores_outside_the_unit_interval_are_refused(two_stages, bad):
    score, table = np.array([0.5, bad]), np.zeros((1, N_GROUPS), dtype=bool)
    with pytest.raises(ValueError, match="1 scores are NaN or outside"):
        two_stages.apply(score, np.zeros((2, N_GROUPS), dtype=bool))
    with pytest.raises(ValueError, match="1 scores are NaN or outside"):
        two_stages.apply_signatures(score, np.zeros(2, dtype=np.int64), table)


def test_wrong_signatures_and_memberships_are_refused(two_stages):
    score, table = np.array([0.5, 0.6]), np.zeros((3, N_GROUPS), dtype=bool)
    for signature in ([0, 3], [-1, 0]):
        with pytest.raises(ValueError, match="outside the table of 3"):
            two_stages.apply_signatures(score, np.array(signature), table)
    with pytest.raises(ValueError, match="signature must be int"):
        two_stages.apply_signatures(score, np.array([0.0, 1.0]), table)
    with pytest.raises(ValueError, match="signature must be int"):
        two_stages.apply_signatures(score, np.array([0]), table)
    with pytest.raises(ValueError, match="membership must be bool"):
        two_stages.apply_signatures(score, np.array([0, 1]), table[:, 1:])
    with pytest.raises(ValueError, match="one dimension"):
        two_stages.apply(score[:, None], table[:2])


@pytest.mark.parametrize("which", ["two_stages", "mixed_stages"])
def test_json_round_trip_scores_the_same(which, rows, request):
    stages, (score, signature, table) = request.getfixturevalue(which), rows
    again = Stages.from_dict(json.loads(json.dumps(stages.to_dict())))
    assert again.to_dict() == stages.to_dict()
    assert again.groups == NAMES
    assert np.array_equal(
        again.apply_signatures(score, signature, table), stages.apply_signatures(score, signature, table)
    )
    assert Stages.from_dict(Stages((), NAMES).to_dict()).stages == ()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"schema": 2}, "schema 1 is needed, found 2"),
        ({"schema": "1"}, "schema 1 is needed, found '1'"),
        ({"groups": ["a"]}, "stage 0: 2 groups where 1 are named"),
        ({"groups": ["a", "a"]}, "the same name"),
        ({"groups": ["a", ""]}, "every group needs a name"),
        ({"groups": ["a", 1]}, "every group needs a name"),
        ({"groups": "ab"}, "must be lists"),
        ({"stages": None}, "must be lists"),
        ({"stages": [{}]}, "stage: an object with exactly the keys"),
        ({"stages": [{}] * 1001}, "1001 are more than 1000"),
        ({"more": 1}, "exactly the keys"),
    ],
)
def test_a_wrong_file_is_refused(changed, message):
    plain = Stages((), ("a", "b")).then(Stage("identity", AdditiveForm.zero(2), 0)).to_dict()
    Stages.from_dict(plain)
    with pytest.raises(ValueError, match=message):
        Stages.from_dict({**plain, **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"link": "probit"}, "link must be one of"),
        ({"link": ["logit"]}, "link must be a word"),
        ({"trees": -1}, "trees must be a whole number"),
        ({"trees": 1.5}, "trees must be a whole number"),
        ({"trees": True}, "trees a whole number"),
        ({"form": None}, "additive form: an object"),
    ],
)
def test_a_wrong_stage_is_refused(changed, message):
    stage = {"link": "logit", "trees": 3, "form": AdditiveForm.zero(1).to_dict()}
    with pytest.raises(ValueError, match=message):
        Stages.from_dict({"schema": 1, "groups": ["a"], "stages": [{**stage, **changed}]})


@pytest.mark.parametrize("plain", [None, [], "stages", 1])
def test_what_is_no_file_of_stages_is_refused(plain):
    with pytest.raises(ValueError, match="found None"):
        Stages.from_dict(plain)

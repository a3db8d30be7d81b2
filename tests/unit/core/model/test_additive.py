from __future__ import annotations

import json
import time

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lightgbm_models import Node, features, model_text, population, train

from mcspark.core.model.additive import MAX_VALUE, AdditiveForm
from mcspark.core.model.lightgbm_text import keep_trees, parse_trees

TOLERANCE = 1e-12
TINY = 1e-35  # LightGBM's Python door reads a value nearer to 0 than this as 0


def boundary_scores(form: AdditiveForm) -> np.ndarray:
    """The thresholds, their float neighbours, and the ends of [0, 1]."""
    at = form.thresholds
    near = np.concatenate([at, np.nextafter(at, -np.inf), np.nextafter(at, np.inf), [0.0, -0.0, 1.0, 0.5]])
    near = near[(near >= 0) & (near <= 1)]
    return near[(near == 0) | (near > TINY)]


def all_memberships(n_groups: int) -> np.ndarray:
    return np.array(np.meshgrid(*[[False, True]] * n_groups)).reshape(n_groups, -1).T.astype(bool)


def assert_equals_booster(text: str, score: np.ndarray, member: np.ndarray) -> AdditiveForm:
    form = AdditiveForm.from_trees(parse_trees(text), member.shape[1])
    scores = np.concatenate([score, boundary_scores(form)])
    members = member[np.arange(len(scores)) % len(member)]
    expected = lgb.Booster(model_str=text).predict(features(scores, members), raw_score=True)
    np.testing.assert_allclose(form.evaluate(scores, members), expected, rtol=0, atol=TOLERANCE)
    return form


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"feature_fraction": 0.3},
        {"boost_from_average": False, "min_data_in_leaf": 1, "max_bin": 1000},
        {"learning_rate": 1.0},
        {"min_data_in_leaf": 1500},
        {"num_leaves": 2},
        {"bagging_fraction": 0.5, "bagging_freq": 1, "extra_trees": True},
        {"objective": "cross_entropy"},
    ],
)
def test_equals_the_booster_on_trained_models(params):
    score, member, residual = population(4000, 8)
    if params.get("objective") == "cross_entropy":
        residual = np.clip(residual, 0, 1)
    weight = np.random.default_rng(5).integers(1, 50, 4000)
    text = train(features(score, member), residual, 300, weight=weight, **params).model_to_string()
    fresh_score, fresh_member, _ = population(2000, 8, seed=9)
    form = assert_equals_booster(text, fresh_score, fresh_member)
    assert (
        form.n_bins
        == len(np.unique(np.concatenate([t.threshold[t.split_feature == 0] for t in parse_trees(text)]))) + 1
    )


def test_equals_the_booster_cut_at_its_best_iteration():
    score, member, residual = population(4000, 8)
    X = features(score, member)
    valid = (X[3000:], residual[3000:])
    full = train(X[:3000], residual[:3000], 500, valid=valid, patience=20, keep_training_booster=True)
    text = keep_trees(full.model_to_string(num_iteration=-1), full.best_iteration)
    form = assert_equals_booster(text, score, member)
    np.testing.assert_allclose(form.evaluate(score, member), full.predict(X), rtol=0, atol=TOLERANCE)


def test_thousands_of_trees_compile_quickly_and_exactly():
    score, member, residual = population(3000, 50)
    text = train(features(score, member), residual, 3000, max_bin=800, min_data_in_leaf=5).model_to_string()
    trees = parse_trees(text)
    start = time.process_time()
    AdditiveForm.from_trees(trees, 50)
    assert time.process_time() - start < 3  # 0.2 s on a quiet machine
    assert_equals_booster(text, score, member)


def test_groups_in_no_tree_have_no_effect():
    score, member, residual = population(2000, 3)
    text = train(features(score, member), residual, 50).model_to_string()
    form = AdditiveForm.from_trees(parse_trees(text), 6)
    assert not form.curves[3:].any()
    assert form.pairs.max() <= 2
    more = np.column_stack([member, ~member])
    narrow = AdditiveForm.from_trees(parse_trees(text), 3)
    assert np.array_equal(form.evaluate(score, more), narrow.evaluate(score, member))


def test_trees_of_one_leaf_are_constants():
    form = assert_equals_booster(model_text([0.25, -1.5], 3), np.array([0.0, 0.7]), all_memberships(2))
    assert form.constant == -1.25
    assert form.n_bins == 1


def test_no_tree_is_no_correction():
    form = AdditiveForm.from_trees([], 2)
    assert form.to_dict() == AdditiveForm.zero(2).to_dict()
    assert np.array_equal(form.evaluate(np.array([0.0, 1.0]), all_memberships(2)[:2]), [0.0, 0.0])


def test_terms_of_known_trees():
    trees = [
        Node(0, 0.5, Node(1, 0.5, 1.0, 3.0), 7.0),  # f <= .5: 1, or 3 with g0; else 7
        Node(1, 0.5, 10.0, Node(2, 0.5, 20.0, 50.0)),  # g0: 20, or 50 with g1; else 10
    ]
    form = AdditiveForm.from_trees(parse_trees(model_text(trees, 3)), 2)
    assert form.constant == 10.0
    assert np.array_equal(form.thresholds, [0.5])
    assert np.array_equal(form.base, [1.0, 7.0])
    assert np.array_equal(form.curves, [[12.0, 10.0], [0.0, 0.0]])
    assert np.array_equal(form.pairs, [[0, 1]])
    assert np.array_equal(form.pair_values, [30.0])
    score, member = np.array([0.5, 0.6, 0.2]), np.array([[True, True], [False, True], [True, False]])
    assert np.array_equal(form.evaluate(score, member), [53.0, 17.0, 23.0])
    assert np.array_equal(form.signature_offset(member), [40.0, 10.0, 10.0])


@pytest.mark.parametrize("threshold", [-0.5, -1e-300, 0.0, 1e-35, 0.5, np.nextafter(1, 0), 1.0, 5.0])
def test_thresholds_of_a_group_anywhere(threshold):
    trees = [
        Node(1, threshold, Node(0, 0.3, 1.0, 2.0), Node(2, threshold, 4.0, 8.0)),
        Node(2, threshold, 16.0, 32.0),
    ]
    assert_equals_booster(model_text(trees, 3), np.linspace(0, 1, 16), all_memberships(2))


def test_the_same_feature_twice_on_a_path():
    trees = [
        Node(0, 0.6, Node(0, 0.2, 1.0, 2.0), Node(0, 0.9, 4.0, 8.0)),
        Node(0, 0.2, Node(0, 0.6, 16.0, 32.0), Node(0, 0.1, 64.0, 128.0)),  # two leaves out of reach
        Node(1, 0.5, Node(1, 0.2, 256.0, 512.0), Node(1, 0.7, 1024.0, 2048.0)),
        Node(0, 0.4, Node(1, 0.5, 1.0, Node(0, 0.3, 2.0, 3.0)), 5.0),
    ]
    assert_equals_booster(model_text(trees, 2), np.linspace(0, 1, 41), all_memberships(1))


def test_a_path_over_the_score_and_two_groups_is_refused():
    tree = Node(0, 0.5, Node(1, 0.5, 1.0, Node(2, 0.5, 2.0, 3.0)), 4.0)
    with pytest.raises(ValueError, match="more than 2 features"):
        AdditiveForm.from_trees(parse_trees(model_text([tree], 3)), 2)


def test_a_feature_beyond_the_groups_is_refused():
    with pytest.raises(ValueError, match="splits on feature 2 of 2"):
        AdditiveForm.from_trees(parse_trees(model_text([Node(2, 0.5, 1.0, 2.0)], 3)), 1)


SCORE_THRESHOLDS = st.one_of(
    st.sampled_from([-0.5, -0.0, 0.0, 0.1, 0.25, 0.3, 0.5, 0.75, 1.0, 1.5]),
    st.floats(0.001, 1.0, allow_subnormal=False),
)
GROUP_THRESHOLDS = st.sampled_from([-1.0, 0.0, 1.0000000180025095e-35, 0.5, 0.999, 1.0, 2.0])
LEAVES = st.floats(-10, 10, allow_subnormal=False)
N_GROUPS = 3


def _node(draw, left, right) -> Node:
    feature = draw(st.integers(0, N_GROUPS))
    return Node(feature, draw(SCORE_THRESHOLDS if feature == 0 else GROUP_THRESHOLDS), left, right)


@st.composite
def any_tree(draw) -> Node | float:
    if draw(st.integers(0, 9)) == 0:
        return draw(LEAVES)
    children = [
        _node(draw, draw(LEAVES), draw(LEAVES)) if draw(st.booleans()) else draw(LEAVES) for _ in range(2)
    ]
    return _node(draw, *children)


@settings(max_examples=150, deadline=None)
@given(st.lists(any_tree(), max_size=8), st.lists(st.floats(0.001, 1.0), max_size=5))
def test_equals_the_booster_on_any_small_ensemble(trees, scores):
    text = model_text(trees, N_GROUPS + 1)
    form = AdditiveForm.from_trees(parse_trees(text), N_GROUPS)
    asked = np.concatenate([scores, boundary_scores(form)])
    member = all_memberships(N_GROUPS)
    score, member = np.repeat(asked, len(member)), np.tile(member, (len(asked), 1))
    expected = lgb.Booster(model_str=text).predict(features(score, member), num_threads=1)
    np.testing.assert_allclose(form.evaluate(score, member), expected, rtol=0, atol=TOLERANCE)


@pytest.fixture(scope="module")
def form() -> AdditiveForm:
    score, member, residual = population(2000, 4)
    text = train(features(score, member), residual, 100).model_to_string()
    return AdditiveForm.from_trees(parse_trees(text), 4)


def test_json_round_trip_is_exact(form):
    again = AdditiveForm.from_dict(json.loads(json.dumps(form.to_dict())))
    assert again.to_dict() == form.to_dict()
    score, member, _ = population(1000, 4, seed=3)
    assert np.array_equal(again.evaluate(score, member), form.evaluate(score, member))
    assert AdditiveForm.from_dict(AdditiveForm.zero(0).to_dict()).n_groups == 0


def test_tables_hold_the_whole_form(form):
    curves, pairs = form.curves_table(), form.pairs_table()
    score, member, _ = population(300, 4, seed=4)
    score = np.concatenate([score, boundary_scores(form)])
    member = np.column_stack(
        [member[np.arange(len(score)) % 300], np.ones(len(score), dtype=bool)]
    )  # -1: everybody
    applies = (curves["lower"] < score[:, None]) & (score[:, None] <= curves["upper"])
    applies &= member[:, curves["group"]]
    assert np.array_equal(applies.sum(axis=1), member.sum(axis=1))
    total = form.constant + applies @ curves["value"]
    total += (member[:, pairs["first"]] & member[:, pairs["second"]]) @ pairs["value"]
    np.testing.assert_allclose(total, form.evaluate(score, member[:, :4]), rtol=0, atol=TOLERANCE)
    assert np.array_equal(curves["bin"][:3], [0, 1, 2])


def test_the_offset_of_a_signature_depends_on_no_other(form):
    member = all_memberships(4)
    alone = [form.signature_offset(member[i : i + 1])[0] for i in range(len(member))]
    assert np.array_equal(form.signature_offset(member), alone)


@pytest.mark.parametrize(
    "member",
    [np.ones((3, 5), dtype=bool), np.ones((3, 4)), np.ones(4, dtype=bool)],
    ids=["width", "type", "shape"],
)
def test_a_wrong_membership_is_refused(form, member):
    with pytest.raises(ValueError, match="membership must be bool of shape"):
        form.evaluate(np.full(3, 0.5), member)


PLAIN = {
    "thresholds": [0.25, 0.5], "constant": 0.1, "base": [1, 2, 3],
    "curves": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], "pairs": [[0, 1]], "pair_values": [0.5],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"thresholds": [0.5, 0.25]}, "do not increase"),
        ({"thresholds": [0.5, 0.5]}, "do not increase"),
        ({"thresholds": [0.5]}, r"base has shape \(3,\) where \(2,\)"),
        ({"thresholds": [0.5, "x"]}, "thresholds must hold numbers"),
        ({"thresholds": [0.5, None]}, "thresholds must hold numbers"),
        ({"thresholds": [0.25, float("nan")]}, "thresholds holds a value that is not finite"),
        ({"thresholds": 0.5}, "thresholds must hold numbers in 1 dimensions"),
        ({"constant": float("inf")}, "constant is not finite"),
        ({"constant": "0.1"}, "constant must hold numbers"),
        ({"constant": True}, "constant must hold numbers"),
        ({"constant": [0.1]}, "constant must hold numbers in 0"),
        ({"base": [1, 2, float("inf")]}, "base holds a value"),
        ({"base": [1, 2, 2 * MAX_VALUE]}, "too large"),
        ({"base": [1, 2, 10**400]}, "base"),
        ({"curves": [[0.0, 1.0, 2.0], [3.0, 4.0]]}, "curves is ragged"),
        ({"curves": [[0.0, 1.0], [3.0, 4.0]]}, "curves has shape"),
        ({"curves": [0.0, 1.0, 2.0]}, "curves must hold numbers in 2"),
        ({"curves": [[0.0, 1.0, 2.0]]}, "a pair is not two groups i < j below 1"),
        ({"pairs": [[1, 0]]}, "a pair is not two groups"),
        ({"pairs": [[1, 1]]}, "a pair is not two groups"),
        ({"pairs": [[-1, 1]]}, "a pair is not two groups"),
        ({"pairs": [[0, 0.5]]}, "pairs must hold group indices"),
        ({"pairs": [[0, 1, 1]]}, "pairs has shape"),
        ({"pairs": [[0, 1], [0, 1]], "pair_values": [1, 2]}, "not in increasing order"),
        ({"pairs": []}, "pair_values has shape"),
        ({"pair_values": [float("nan")]}, "pair_values holds a value"),
        ({"more": 1}, "exactly the keys"),
    ],
)
def test_a_wrong_file_is_refused(changed, message):
    AdditiveForm.from_dict(PLAIN)
    with pytest.raises(ValueError, match=message):
        AdditiveForm.from_dict({**PLAIN, **changed})


@pytest.mark.parametrize("plain", [None, [], {}, "form", {k: PLAIN[k] for k in list(PLAIN)[1:]}])
def test_what_is_no_form_is_refused(plain):
    with pytest.raises(ValueError, match="exactly the keys"):
        AdditiveForm.from_dict(plain)


def test_sizes_are_bounded(monkeypatch):
    monkeypatch.setattr("mcspark.core.model.additive.MAX_CURVE_VALUES", 5)
    with pytest.raises(ValueError, match="3 bins of 2 groups are more than is allowed"):
        AdditiveForm.from_dict(PLAIN)

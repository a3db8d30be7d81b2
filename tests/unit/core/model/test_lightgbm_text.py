from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest
from lightgbm_models import Node, features, model_text, population, train

from mcspark.core.cells.levels import ScoreBins
from mcspark.core.model.lightgbm_text import (
    feature_names,
    keep_trees,
    map_thresholds,
    parse_trees,
    plus_constant,
    score_threshold,
    with_feature_names,
    without_addresses,
)
from mcspark.core.model.tree import Tree


@pytest.fixture(scope="module")
def booster() -> lgb.Booster:
    score, member, residual = population(4000, 5)
    return train(features(score, member), residual, 60, feature_fraction=0.5)


def leaves_of_dump(node: dict, box: dict) -> list[tuple[float, dict]]:
    """Leaves and boxes as LightGBM's own JSON dump tells them."""
    if "leaf_value" in node:
        return [(node["leaf_value"], box)]
    feature, threshold = node["split_feature"], node["threshold"]
    low, high = box.get(feature, (-np.inf, np.inf))
    left = leaves_of_dump(node["left_child"], {**box, feature: (low, min(high, threshold))})
    return left + leaves_of_dump(node["right_child"], {**box, feature: (max(low, threshold), high)})


def test_a_constant_is_added_to_every_prediction(booster):
    X = features(*population(500, 5, seed=1)[:2])
    moved = lgb.Booster(model_str=plus_constant(booster.model_to_string(), -0.375))
    np.testing.assert_allclose(moved.predict(X), booster.predict(X) - 0.375, rtol=0, atol=1e-15)
    first, before = (
        b.dump_model(num_iteration=1)["tree_info"][0]["tree_structure"] for b in (moved, booster)
    )
    assert first["internal_value"] == pytest.approx(before["internal_value"] - 0.375, abs=1e-6)
    with pytest.raises(ValueError, match="no tree that a constant"):
        plus_constant(keep_trees(booster.model_to_string(), 0), 1.0)


def test_addresses_are_left_out_and_nothing_else():
    text = (
        "[tree_learner: data]\n[machines: 10.0.0.1:9,10.0.0.2:9]\n[local_listen_port: 9]\n[num_machines: 2]\n"
    )
    assert without_addresses(text) == "[tree_learner: data]\n[num_machines: 2]\n"


def trees_and_importances(text: str) -> str:
    return text.partition("parameters:")[0].partition("pandas_categorical:")[0].rstrip()


def leaves(tree: Tree) -> list:
    """Value and box of every leaf of a tree of numbers: feature → (low, high]."""
    found = []
    for value, path in tree.leaves():
        box: dict = {}
        for node, goes_left in path:
            feature, threshold = int(tree.split_feature[node]), float(tree.threshold[node])
            low, high = box.get(feature, (-np.inf, np.inf))
            box[feature] = (low, min(high, threshold)) if goes_left else (max(low, threshold), high)
        found.append((value, box))
    return found


def test_trees_are_those_of_lightgbms_own_dump(booster):
    dumped = booster.dump_model()["tree_info"]
    trees = parse_trees(booster.model_to_string())
    assert len(trees) == len(dumped) == 60
    for tree, info in zip(trees, dumped, strict=True):
        assert leaves(tree) == leaves_of_dump(info["tree_structure"], {})


def test_keeping_all_trees_changes_nothing(booster):
    text = booster.model_to_string()
    assert keep_trees(text, 60) == text


@pytest.mark.parametrize("n", [0, 1, 17, 59])
def test_a_cut_model_is_the_prefix(booster, n, tmp_path):
    X = features(*population(500, 5, seed=1)[:2])
    text = keep_trees(booster.model_to_string(), n)
    (tmp_path / "model.txt").write_text(text)
    for cut in (lgb.Booster(model_str=text), lgb.Booster(model_file=tmp_path / "model.txt")):
        assert cut.num_trees() == n
        prefix = booster.predict(X, num_iteration=n) if n else np.zeros(500)
        assert np.array_equal(cut.predict(X), prefix)
    # LightGBM writes the loaded model again: its header and importances are the judge of ours.
    assert trees_and_importances(lgb.Booster(model_str=text).model_to_string()) == trees_and_importances(text)


def test_cut_at_the_best_iteration():
    score, member, residual = population(3000, 5)
    X = features(score, member)
    valid = (X[2000:], residual[2000:])
    full = train(X[:2000], residual[:2000], 400, valid=valid, patience=20, keep_training_booster=True)
    assert 0 < full.best_iteration < full.num_trees()
    text = keep_trees(full.model_to_string(num_iteration=-1), full.best_iteration)
    assert np.array_equal(lgb.Booster(model_str=text).predict(X), full.predict(X))


@pytest.mark.parametrize("n", [-1, 61])
def test_a_cut_outside_the_model_is_refused(booster, n):
    with pytest.raises(ValueError, match=f"cannot keep {n} of 60 trees"):
        keep_trees(booster.model_to_string(), n)


def test_thresholds_of_bins_become_thresholds_of_scores():
    bins = ScoreBins(10, (0, 1, 2, 0, 0, 3, 0, 0, 1, 0))
    edges = bins.edges()
    score, member, residual = population(5000, 4)
    score[:200] = np.random.default_rng(0).choice(edges, 200)
    by_bin = train(features(bins.assign(score), member), residual, 80, min_data_in_bin=1)
    text = map_thresholds(by_bin.model_to_string(), 0, score_threshold(edges))
    by_score = lgb.Booster(model_str=text)
    asked = np.concatenate([score, edges, np.nextafter(edges[1:], 0), np.nextafter(edges[:-1], 1)])
    some = member[np.arange(len(asked)) % len(member)]
    expected = by_bin.predict(features(bins.assign(asked), some))
    assert np.array_equal(by_score.predict(features(asked, some)), expected)
    infos = text.split("feature_infos=")[1].split("\n")[0].split()
    assert infos == ["[0:1]", *["[0:1]"] * 4]
    assert np.array_equal(
        by_score.predict(features(asked, some), num_iteration=7),
        by_bin.predict(features(bins.assign(asked), some), num_iteration=7),
    )


@pytest.mark.parametrize(
    "threshold", [-3.0, -0.5, 0.0, 1e-35, 0.5, 6.99, 7.0, 7.5, 8.0, 8.5, 9.0, 9.7, 1e300]
)
def test_score_threshold_splits_scores_as_bins(threshold):
    bins = ScoreBins(5, (1, 0, 2, 0, 1))  # 10 bins
    edges = bins.edges()
    score = np.concatenate([edges, np.nextafter(edges[1:], 0), np.nextafter(edges[:-1], 1)])
    left = bins.assign(score) <= threshold
    assert np.array_equal(score <= score_threshold(edges)(threshold), left)


def test_only_the_thresholds_of_the_feature_are_touched(booster):
    text = booster.model_to_string()
    halved = map_thresholds(text, 0, lambda t: t / 2)
    for before, after in zip(parse_trees(text), parse_trees(halved), strict=True):
        on_score = before.split_feature == 0
        assert np.array_equal(after.threshold[on_score], before.threshold[on_score] / 2)
        assert np.array_equal(after.threshold[~on_score], before.threshold[~on_score])
        assert np.array_equal(after.leaf_value, before.leaf_value)


@pytest.mark.parametrize(
    ("mapping", "message"), [(lambda t: -t, "decreases"), (lambda t: np.inf, "leaves the finite numbers")]
)
def test_a_wrong_mapping_is_refused(booster, mapping, message):
    with pytest.raises(ValueError, match=message):
        map_thresholds(booster.model_to_string(), 0, mapping)


def test_mapping_a_feature_that_is_not_there_is_refused(booster):
    with pytest.raises(ValueError, match="no feature 6 among 6"):
        map_thresholds(booster.model_to_string(), 6, lambda t: t)


def test_feature_names_reach_lightgbm(booster):
    text = with_feature_names(booster.model_to_string(), feature_names(5))
    renamed = lgb.Booster(model_str=text)
    assert renamed.feature_name() == ["score", "g0", "g1", "g2", "g3", "g4"]
    X = features(*population(100, 5, seed=2)[:2])
    assert np.array_equal(renamed.predict(X), booster.predict(X))
    assert trees_and_importances(renamed.model_to_string()) == trees_and_importances(text)


@pytest.mark.parametrize(
    "names",
    [("score",), ("a", "a", "b", "c", "d", "e"), ("race:black", "b", "c", "d", "e", "f"),
     ("a b", "b", "c", "d", "e", "f"), ("", "b", "c", "d", "e", "f")],
)  # fmt: skip
def test_names_that_lightgbm_cannot_read_are_refused(booster, names):
    with pytest.raises(ValueError, match="feature name"):
        with_feature_names(booster.model_to_string(), names)


STUMP = Node(0, 0.5, -1.0, 1.0)


def test_a_tree_of_one_leaf_and_no_tree_at_all():
    score, member, residual = population(300, 2)
    constant = train(features(score, member), residual, 3, min_data_in_leaf=1000)
    (tree,) = parse_trees(constant.model_to_string())
    assert leaves(tree) == [(pytest.approx(residual.mean(), rel=1e-6), {})]
    assert parse_trees(model_text([], 3)) == []


def test_format_v3_is_read():
    (tree,) = parse_trees(model_text([STUMP], 1, version="v3"))
    assert leaves(tree) == [(-1.0, {0: (-np.inf, 0.5)}), (1.0, {0: (0.5, np.inf)})]


def test_training_with_missing_values_is_accepted():
    score, member, residual = population(2000, 2)
    score[::7] = np.nan
    text = train(features(score, member), residual, 20).model_to_string()
    assert any((tree.decision_type >> 2 == 2).any() for tree in parse_trees(text))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"linear_tree": True}, "leaves are linear models"),
        ({"zero_as_missing": True}, "takes zero as missing"),
        ({"max_depth": 3, "num_leaves": 8}, "a path looks at more than 2 features"),
        ({"boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1}, "averages its trees"),
        ({"objective": "multiclass", "num_class": 3}, "one tree an iteration"),
    ],
)
def test_trained_models_without_an_additive_form_are_refused(params, message):
    score, member, residual = population(3000, 4)
    X = features(score, member)
    y = np.digitize(residual, [-0.1, 0.1]) if "num_class" in params else residual
    with pytest.raises(ValueError, match=message):
        parse_trees(train(X, y, 5, **params).model_to_string())


def test_depth_is_no_matter_while_a_path_has_two_features():
    deep = Node(0, 0.5, Node(0, 0.2, Node(1, 0.5, 1.0, Node(0, 0.1, 2.0, 3.0)), 4.0), 5.0)
    (tree,) = parse_trees(model_text([deep], 3))
    boxes = dict(leaves(tree))
    assert boxes[3.0] == {0: (0.1, 0.2), 1: (0.5, np.inf)}
    assert boxes[4.0] == {0: (0.2, 0.5)}


GOOD = model_text([STUMP, Node(0, 0.5, Node(1, 0.5, 1.0, 2.0), 3.0)], 2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tree\n", "forest\n", "not a LightGBM model text"),
        ("end of trees", "", "not a LightGBM model text"),
        ("version=v4", "version=v2", "format v2"),
        ("version=v4\n", "", "lacks version"),
        ("num_class=1", "num_class=3", "one tree an iteration"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=2", "one tree an iteration"),
        ("max_feature_idx=1", "max_feature_idx=-1", "max_feature_idx is no number"),
        ("max_feature_idx=1", "max_feature_idx=0", "feature_names does not have 1 entries"),
        ("feature_infos=[0:1] [0:1]", "feature_infos=[0:1]", "feature_infos does not have 2 entries"),
        ("Tree=1\n", "", "2 trees in the header, 1 in the text"),
        ("split_feature=0 1", "split_feature=0 2", "tree 1 of 2: split_feature 2 is not below 2"),
        ("split_feature=0 1", "split_feature=0 -1", "split feature is negative"),
        ("split_feature=0 1", "split_feature=0", "split_feature has 1 entries where 2"),
        ("split_feature=0 1\n", "", "split_feature is missing"),
        ("split_feature=0 1", f"split_feature=0 {2**70}", "beyond"),
        ("split_feature=0 1", "split_feature=0 x", "tree 1 of 2: invalid literal"),
        ("left_child=1 -1", "left_child=1 1", "do not make a tree"),
        ("left_child=1 -1", "left_child=0 -1", "do not make a tree"),
        ("left_child=1 -1", "left_child=-9 -1", "do not make a tree"),
        ("left_child=1 -1\nright_child=-3 -2", "left_child=-1 1\nright_child=-2 -3", "do not make a tree"),
        ("threshold=0.5 0.5", "threshold=0.5 nan", "not finite"),
        ("leaf_value=1.0 2.0 3.0", "leaf_value=1.0 inf 3.0", "not finite"),
        ("leaf_value=1.0 2.0 3.0", "leaf_value=", "it has no leaf"),
        ("num_leaves=3", "num_leaves=4", "num_leaves is 4 and not 3"),
        ("decision_type=2 2", "decision_type=2 3", "categorical"),
        ("decision_type=2 2", "decision_type=2 6", "zero as missing"),
        ("decision_type=2 2", "decision_type=2 14", "decision_type 14 is unknown"),
        ("num_cat=0", "num_cat=1", "categorical"),
    ],
)
def test_malformed_text_is_refused(old, new, message):
    assert len(parse_trees(GOOD)) == 2
    assert old in GOOD
    with pytest.raises(ValueError, match=message):
        parse_trees(GOOD.replace(old, new))

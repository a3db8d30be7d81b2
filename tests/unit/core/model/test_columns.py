"""Trees that have learned from columns: the additive form against LightGBM's own predictions."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest
from lightgbm_models import Node, model_text, train

from mcspark.core.cells.features import Features
from mcspark.core.model.additive import AdditiveForm
from mcspark.core.model.lightgbm_text import missing_with_most, parse_trees
from mcspark.core.model.stages import Stage, Stages

SIZES, ORDERED = (40, 3, 12, 1, 300), (False, False, True, False, False)


def rows(n: int, seed: int, unseen: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and codes of which some are missing; all of them, or only those that are met in training."""
    rng = np.random.default_rng(seed)
    score = np.clip(rng.normal(0.5, 0.3, n), 0, 1)
    codes = np.column_stack([np.minimum(rng.geometric(3 / (s + 2), n) - 1, s) for s in SIZES])
    if not unseen:
        codes[:, 4] = np.where(codes[:, 4] > 250, 0, codes[:, 4])
    else:
        codes[:, 4] = rng.integers(0, 301, n)
    return score, codes


def table(score: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return np.column_stack([score, Features((), SIZES, ORDERED, codes).values])


def correction(form: AdditiveForm, score: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The form's, by way of a stage on a scale that nothing is cut from."""
    lists = Features((), SIZES, ORDERED, codes).members
    member = np.zeros((len(score), sum(SIZES)), dtype=bool)
    owner, column = np.nonzero(lists >= 0)
    member[owner, lists[owner, column]] = True
    plain = form.evaluate(score, member)
    offset = form.signature_offset(lists)
    np.testing.assert_allclose(offset, form.signature_offset(member), rtol=0, atol=1e-15)
    return plain


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("missing", [True, False])
def test_the_form_is_the_sum_of_the_trees(seed, missing):
    score, codes = rows(6000, seed)
    if not missing:
        codes = np.maximum(codes, 1)
    rng = np.random.default_rng(seed)
    effect = [rng.normal(0, 0.4, s + 1)[c] for s, c in zip(SIZES, codes.T, strict=True)]
    wrong = effect[0] * score + effect[1] + effect[0] * effect[4] + effect[2] * effect[1] - effect[3]
    booster = train(
        table(score, codes), wrong + rng.normal(0, 0.2, len(score)), 150,
        categorical_feature=[1, 2, 4, 5], min_data_per_group=5, cat_smooth=1, cat_l2=2, max_bin=400,
        min_data_in_bin=1, min_data_in_leaf=5,
    )  # fmt: skip
    trees = parse_trees(booster.model_to_string())
    assert sum(len(tree.left) for tree in trees) > 50
    form = AdditiveForm.from_trees(trees, SIZES)
    score, codes = rows(3000, seed + 100, unseen=True)
    wanted = booster.predict(table(score, codes))
    np.testing.assert_allclose(correction(form, score, codes), wanted, rtol=0, atol=1e-12)


def test_lists_of_categories_score_as_the_table_of_them_does():
    score, codes = rows(4000, 7)
    rng = np.random.default_rng(1)
    booster = train(
        table(score, codes), rng.normal(0, 0.2, len(score)) + 0.001 * codes[:, 4] * (codes[:, 0] > 3), 80,
        categorical_feature=[1, 2, 4, 5], min_data_per_group=5, cat_smooth=1, max_bin=400,
    )  # fmt: skip
    form = AdditiveForm.from_trees(parse_trees(booster.model_to_string()), SIZES)
    stages = Stages((Stage("logit", form, 80),) * 2, tuple(f"c{i}" for i in range(sum(SIZES))))
    lists = Features((), SIZES, ORDERED, codes).members
    member = np.zeros((len(score), sum(SIZES)), dtype=bool)
    owner, column = np.nonzero(lists >= 0)
    member[owner, lists[owner, column]] = True
    every = np.arange(len(score))
    found = stages.apply_signatures(score, every, lists)
    assert np.array_equal(found, stages.apply_signatures(score, every, member))
    order = rng.permutation(len(score))[:777]
    assert np.array_equal(found[order], stages.apply_signatures(score[order], order, lists))
    with pytest.raises(ValueError, match="numbers below"):
        stages.apply_signatures(score, every, lists + sum(SIZES))


def test_a_category_that_no_tree_knows_goes_with_the_rest():
    text = model_text([Node(1, 0.5, -1.0, 2.0)], 2).replace("num_cat=0", "num_cat=1")
    text = text.replace("decision_type=2", "decision_type=1").replace("threshold=0.5", "threshold=0")
    text = text.replace("left_child", "cat_boundaries=0 2\ncat_threshold=12 1\nleft_child")
    form = AdditiveForm.from_trees(parse_trees(text), (40,))
    codes = np.array([0, 1, 2, 3, 4, 31, 32, 33, 40])
    found = (
        form.signature_offset(Features((), (40,), (False,), codes[:, None]).members)
        + form.curves[codes - 1, 0] * (codes > 0)
        + form.base[0]
    )
    assert found.tolist() == [2, 2, -1, -1, 2, 2, -1, 2, 2]


@pytest.mark.parametrize(("kind", "of_missing"), [(8, 2.0), (10, -1.0)])
def test_missing_values_may_be_all_that_a_split_parts(kind, of_missing):
    """LightGBM writes an infinite threshold where a split parts the missing values from all numbers."""
    text = model_text([Node(1, np.inf, -1.0, 2.0)], 2).replace("decision_type=2", f"decision_type={kind}")
    wanted = lgb.Booster(model_str=text).predict(np.array([[0.5, np.nan], [0.5, 1], [0.5, 12]]))
    form = AdditiveForm.from_trees(parse_trees(text), (12,))
    found = [form.base[0] + form.constant, *(form.base[0] + form.constant + form.curves[[0, 11], 0])]
    assert found == wanted.tolist() == [of_missing, -1.0, -1.0]
    for where in (text.replace("split_feature=1", "split_feature=0"), text.replace(f"type={kind}", "type=2")):
        with pytest.raises(ValueError, match="not finite"):
            AdditiveForm.from_trees(parse_trees(where), (12,))


def test_missing_values_that_were_never_seen_go_with_most_rows():
    score, codes = rows(4000, 3)
    codes = np.maximum(codes, 1)
    many = 1.0 * (codes[:, 2] > 1)
    booster = train(table(score, codes), many + score / 9, 30, categorical_feature=[1, 2, 4, 5], max_bin=400)
    text = booster.model_to_string()
    moved = lgb.Booster(model_str=missing_with_most(text, {3}))
    np.testing.assert_array_equal(moved.predict(table(score, codes)), booster.predict(table(score, codes)))
    form = AdditiveForm.from_trees(parse_trees(missing_with_most(text, {3})), SIZES)
    codes[:, 2] = 0
    found = correction(form, score, codes)
    np.testing.assert_allclose(found, moved.predict(table(score, codes)), rtol=0, atol=1e-12)
    # Most rows are above the step; as a 0, which LightGBM would take it for, it would be below.
    assert many.mean() > 0.6
    assert found.mean() > 0.9
    assert booster.predict(table(score, codes)).mean() < 0.3
    assert missing_with_most(text, {2}) == text
    with pytest.raises(ValueError, match="do not fit the tree"):
        missing_with_most(text.replace("leaf_weight=", "leaf_weight=1 "), {3})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cat_boundaries=0 2", "cat_boundaries=0 3", "does not cut"),
        ("cat_boundaries=0 2", "cat_boundaries=0 0", "does not cut"),
        ("cat_boundaries=0 2", "cat_boundaries=0 2 2", "does not cut"),
        ("cat_threshold=12 1", f"cat_threshold=12 {2**32}", "beyond|bits"),
        ("cat_threshold=12 1", "cat_threshold=12 -1", "bits"),
        ("cat_threshold=12 1\n", "", "cat_threshold is missing"),
        ("num_cat=1", "num_cat=0", "num_cat is 0, but 1"),
        ("threshold=0\n", "threshold=1\n", "has the set 1 of 1"),
        ("threshold=0\n", "threshold=0.5\n", "has the set 0.5 of 1"),
        ("split_feature=1", "split_feature=0", "splits the score by category"),
        ("split_feature=1", "split_feature=2", "splits on feature 2 of 2"),
    ],
)
def test_malformed_sets_are_refused(old, new, message):
    text = model_text([Node(1, 0.5, -1.0, 2.0)], 3).replace("num_cat=0", "num_cat=1")
    text = text.replace("decision_type=2", "decision_type=1").replace("\nthreshold=0.5", "\nthreshold=0")
    text = text.replace("left_child", "cat_boundaries=0 2\ncat_threshold=12 1\nleft_child")
    AdditiveForm.from_trees(parse_trees(text), (40,))
    assert old in text
    with pytest.raises(ValueError, match=message):
        AdditiveForm.from_trees(parse_trees(text.replace(old, new, 1)), (40,))

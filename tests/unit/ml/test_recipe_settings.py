"""The recipe in the configuration, and what a model remembers of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mcspark.config import Calibrator
from mcspark.core.model.stages import Stages
from mcspark.core.training.recipe import SEARCHED, Candidate, Recipe
from mcspark.core.training.rounds import Round
from mcspark.ml.fit_summary import FitSummary
from mcspark.ml.methods import estimator_of, given
from mcspark.ml.params import SEARCHED_PARAMS

KEYS = {
    "link": "logit", "learning_rate": 0.25, "min_rows_in_leaf": 30, "early_stopping_rounds": 9,
    "rounds": "auto", "refit": True,
}  # fmt: skip
NONE = Stages((), ("a",))
CANDIDATE = Candidate("logit", 1.0, 20, (12, 3), 0.17, chosen=True, why="the first candidate")
SUMMARY = FitSummary(
    ("a",), (), (Round(12, 0.2, 0.17, 0.01, kept=True, capped=True),),
    engine="lightgbm", recipe=Recipe("auto", "logit", 1.0, 20, 1, refit=True, candidates=(CANDIDATE,)),
)  # fmt: skip


def test_every_key_that_the_recipe_chooses_has_a_parameter():
    assert set(KEYS) == set(SEARCHED) == set(SEARCHED_PARAMS) <= set(Calibrator.model_fields)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_is_set_is_set_in_the_estimator_and_no_other_is(key):
    settings = Calibrator.model_validate({"recipe": "auto", key: KEYS[key]})
    estimator = estimator_of(settings)
    assert given(settings) == {key}
    assert [name for name, param in SEARCHED_PARAMS.items() if estimator.isSet(param)] == [key]


def test_a_key_that_is_set_to_its_default_is_kept_too():
    assert given(Calibrator(learning_rate=0.1)) == {"learning_rate"}


@pytest.mark.parametrize(("training", "recipe"), [("cells", "auto"), ("rows", "paper")])
def test_trees_grown_on_rows_have_the_papers_recipe(training, recipe):
    estimator = estimator_of(Calibrator(recipe="auto", training=training))
    assert estimator.getOrDefault("recipe") == recipe


def test_a_model_remembers_what_was_tried():
    plain = json.loads(json.dumps(SUMMARY.to_dict()))
    assert FitSummary.from_dict(plain, ("a",), NONE) == SUMMARY


def test_a_record_of_an_earlier_version_has_no_recipe_and_no_cap():
    plain = json.loads(json.dumps(SUMMARY.to_dict()))
    del plain["recipe"], plain["rounds"][0]["capped"]
    found = FitSummary.from_dict(plain, ("a",), NONE)
    assert found.recipe is None
    assert found.warnings == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "best"}, {"link": "log"}, {"learning_rate": "1"}, {"min_rows_in_leaf": -1}, {"rounds": 1.0},
        {"refit": 1}, {"candidates": {}}, {"candidates": [{}]}, {"more": 1},
    ],
)  # fmt: skip
def test_a_recipe_that_is_none_is_refused(changes):
    plain = json.loads(json.dumps(SUMMARY.to_dict()))
    plain["recipe"].update(changes)
    with pytest.raises(ValueError, match=r"recipe|record of the fit"):
        FitSummary.from_dict(plain, ("a",), NONE)


@pytest.mark.parametrize(
    "changes", [{"link": 1}, {"trees": 3}, {"trees": [-1]}, {"chosen": "no"}, {"why": None}, {"loss": None}]
)
def test_a_candidate_that_is_none_is_refused(changes):
    plain = json.loads(json.dumps(SUMMARY.to_dict()))
    plain["recipe"]["candidates"][0].update(changes)
    with pytest.raises(ValueError, match=r"candidate|record of the fit"):
        FitSummary.from_dict(plain, ("a",), NONE)


def test_only_a_cap_on_a_stage_is_a_warning():
    (warning,) = SUMMARY.warnings
    assert "stage 1" in warning
    assert "12 trees" in warning
    assert "raise calibrator.max_trees" in warning
    (found,) = SUMMARY.rounds
    for harmless in (replace(found, kept=False), replace(found, capped=False)):
        assert replace(SUMMARY, rounds=(harmless,)).warnings == ()

"""Groups whose signatures tell all categories: the same groups, limits, and files that are not trusted."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest

from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.core.model.additive import AdditiveForm
from mcspark.core.model.stages import Stage, Stages
from mcspark.core.saved import digest, saved_model
from mcspark.errors import ConfigurationError, ContractError
from mcspark.ml.baselines import ESTIMATORS
from mcspark.ml.cells.features import all_categories
from mcspark.ml.cells.groups import GroupSet
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.ml.persistence import _plain, model_from_plain
from mcspark.predicates import check_predicate

RACE = Family("value", "race", (3, 7), columns=("race",), seen=(1, 3, 5, 7))
AGE = Family("bins", "age", (1,), bins=(0.0, 18.0, 65.0, 99.0), columns=("age",))
WOMEN = Family("predicate", "women", (1,), where=check_predicate("sex = 2")[0], columns=("sex",))
JOB = Family("value", "job", tuple(f"j{i}" for i in range(400)), columns=("job",))
PAIRS = ((0, 2), (1, 3))


def fitted() -> FittedGroups:
    features = (replace(RACE, categories=(1, 3, 5, 7)), replace(AGE, categories=(0, 1, 2)), WOMEN, JOB)
    return FittedGroups((RACE, AGE, WOMEN), PAIRS, features=features)


def test_a_signature_of_all_categories_tells_the_groups():
    rng = np.random.default_rng(1)
    sizes = [len(f.categories) for f in fitted().features]
    codes = np.column_stack([rng.integers(0, size + 1, 500) for size in sizes])
    words = fitted().words(codes)
    assert np.array_equal(fitted().codes(words), codes)
    own = np.column_stack([codes[:, 0] == 2, codes[:, 0] == 4, codes[:, 1] == 2, codes[:, 2] == 1])
    wanted = np.column_stack([own, own[:, 0] & own[:, 2], own[:, 1] & own[:, 3]])
    assert np.array_equal(fitted().membership(words), wanted)
    names = fitted().learned_names
    assert len(names) == sum(sizes)
    for row, numbers in zip(codes, fitted().members(words), strict=True):
        told = [names[number] for number in numbers if number >= 0]
        families = zip(fitted().features, row, strict=True)
        assert told == [f.group_name(f.categories[code - 1]) for f, code in families if code]


def plain_model() -> dict:
    groups = fitted()
    form = AdditiveForm.zero(len(groups.learned_names))
    stages = Stages((Stage("identity", form, 1),), groups.learned_names)
    return json.loads(json.dumps(_plain(MulticalibratorModel(groups, stages))))


def test_a_model_is_read_as_it_was_written():
    plain = plain_model()
    assert saved_model(plain).groups == fitted()
    assert model_from_plain(MulticalibratorModel, plain).fitted == fitted()


@pytest.mark.parametrize(
    ("forge", "match"),
    [
        (lambda p: p.pop("features"), "disagree about the order"),
        (lambda p: p.update(features=[]), "list of columns"),
        (lambda p: p.update(features={}), "list of columns"),
        (lambda p: p["features"].pop(0), "another one among the features"),
        (lambda p: p["features"].reverse(), "another one among the features"),
        (lambda p: p.update(features=p["features"][:2]), "none of the features"),
        (lambda p: p["features"][0]["categories"].remove(7), "another one among the features"),
        (lambda p: p["features"][3]["categories"].append("j1"), "one name"),
        (lambda p: p["features"][3]["categories"].append("j400"), "disagree about the order"),
        (lambda p: p["features"][3]["categories"].append(5), "different types"),
        (lambda p: p["features"][3].update(categories=[f"{i}" for i in range(40_000)]), "at most 32768"),
        (lambda p: p["features"][2].update(where="sex = 2 or true()"), "another one"),
        (lambda p: p["features"].append({"kind": "predicate", "column": "x", "categories": [1],
            "columns": ["x"], "where": "x  =  1"}), "condition of group 'x' is not"),
        (lambda p: p.update(method="none"), "no stages"),
        (lambda p: p.update(features=[3]), "Error"),
    ],
)  # fmt: skip
def test_forged_features_are_refused(forge, match):
    plain = copy.deepcopy(plain_model())
    forge(plain)
    plain["sha256"] = digest(plain)
    with pytest.raises(ValueError, match=match):
        saved_model(plain)


def shares(*counts: int) -> list[dict]:
    return [{f"v{i}": 1 / n for i in range(n)} for n in counts]


def columns(*names: str) -> tuple[Family, ...]:
    return tuple(Family("value", name, columns=(name,)) for name in names)


def test_too_many_categories_are_refused_by_the_name_of_the_column():
    with pytest.raises(
        ContractError, match=r"33,000 categories, more than 32,768; the most, 9,000, are of b"
    ):
        all_categories(columns("a", "b", "c", "d"), shares(8_000, 9_000, 8_000, 8_000))
    with pytest.raises(ContractError, match=r"the most, 36,000,000, are of b and c: give one"):
        all_categories(columns("a", "b", "c"), shares(2, 6_000, 6_000))
    with pytest.raises(ContractError, match="two categories of the features have the name 'a=v0'"):
        all_categories((*columns("a"), Family("predicate", "a=v0", where="x", columns=("x",))), shares(2, 1))


def test_categories_of_bins_and_quotients():
    bins = Family("bins", "age", bins=(0.0, 1.0, 2.0, 3.0), columns=("age",))
    tenths = Family("divide", "age", divide_by=10.0, columns=("age",))
    found = all_categories((bins, tenths), [{1: 1.0}, {2: 0.5, 5: 0.3, 6: 0.2}])
    assert [f.categories for f in found] == [(0, 1, 2), (2, 3, 4, 5, 6)]
    assert all_categories((tenths,), [{0: 0.5, 9000: 0.5}])[0].categories == (0, 9000)


def test_baselines_do_not_learn_from_columns():
    for kind in ESTIMATORS.values():
        estimator = kind(groups=GroupSet((RACE,)))
        with pytest.raises(ConfigurationError, match="does not learn from columns"):
            estimator.fit_cells(None, fitted())

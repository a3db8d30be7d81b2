from __future__ import annotations

import numpy as np
import pytest

from mcspark.acs.population import NumpyBackend, population_arrays
from mcspark.core.cells.levels import level_index, level_value


def memberships(people: dict[str, np.ndarray], share: float = 0.01) -> np.ndarray:
    """The groups of the default configuration, made independently of the product."""
    columns = (
        people["RAC1P"],
        people["SEX"],
        np.digitize(people["AGEP"], [0, 5, 18, 25, 35, 45, 65, 85, 100, 120]),
        np.digitize(people["SCHL"], [0, 16, 18, 20, 21, 22, 25]),
        people["OCCP"] // 100,
    )
    groups = [column == value for column in columns for value in np.unique(column)]
    return np.array([group for group in groups if group.mean() > share]).T


def mc_error(score: np.ndarray, label: np.ndarray, groups: np.ndarray, m: int) -> float:
    level = level_index(score, m)
    residual = level_value(level, m) - label
    return max(
        np.abs(np.bincount(level[g], weights=residual[g], minlength=m)).sum() / len(score) for g in groups.T
    )


def test_the_population_is_miscalibrated_as_documented_and_its_truth_is_not() -> None:
    people = population_arrays(80_000, seed=7)
    groups = memberships(people)
    assert groups.shape[1] == 47
    assert mc_error(people["score"], people["label"], groups, 20) == pytest.approx(0.083, abs=0.01)
    assert mc_error(people["truth"], people["label"], groups, 20) < 0.006


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_the_truth_is_the_expectation_of_the_label(kind: str) -> None:
    people = population_arrays(200_000, seed=3, kind=kind)
    label, truth = people["label"], people["truth"]
    assert label.min() >= 0
    assert label.max() <= 1
    assert (set(np.unique(label)) == {0.0, 1.0}) == (kind == "binary")
    for low in np.arange(0, 1, 0.2):
        here = (truth >= low) & (truth < low + 0.2)
        standard_error = 0.5 / np.sqrt(here.sum())
        assert label[here].mean() == pytest.approx(truth[here].mean(), abs=4 * standard_error)


def test_mistakes_are_a_function_of_groups_and_the_same_for_every_seed() -> None:
    def logit(p: np.ndarray) -> np.ndarray:
        return np.log(p / (1 - p))

    mistakes: dict[tuple[int, ...], float] = {}
    for seed in (1, 2):
        people = population_arrays(20_000, seed=seed)
        mistake = logit(people["score"]) - logit(people["truth"])
        age = np.digitize(people["AGEP"], [18, 25, 35, 45, 65, 85])
        schooling = np.digitize(people["SCHL"], [16, 18, 20, 21, 22])
        places = np.stack([people["RAC1P"], people["SEX"], age, schooling, people["OCCP"] // 100], axis=1)
        for place, value in zip(map(tuple, places), mistake, strict=True):
            assert mistakes.setdefault(place, value) == pytest.approx(value, abs=1e-9)
    assert len(mistakes) > 5_000


def test_a_person_does_not_depend_on_how_many_others_there_are() -> None:
    few, many = population_arrays(1_000, seed=5), population_arrays(3_000, seed=5)
    for name, values in few.items():
        np.testing.assert_array_equal(values, many[name][:1_000], err_msg=name)


def test_keys_are_unique_and_another_seed_gives_other_people() -> None:
    one, other = population_arrays(10_000, seed=1), population_arrays(10_000, seed=2)
    assert len(set(zip(one["SERIALNO"], one["SPORDER"], strict=True))) == 10_000
    assert (one["OCCP"] == other["OCCP"]).mean() < 0.1
    assert all(len(code) == 5 and code.startswith("00") for code in one["PUMA"])
    assert one["PWGTP"].min() >= 1


def test_hashed_uniforms_are_uniform_and_uncorrelated_between_streams() -> None:
    ops, person = NumpyBackend(), np.arange(100_000)
    first, second = ops.uniform(1, 0, person), ops.uniform(1, 1, person)
    assert np.histogram(first, bins=20, range=(0, 1))[0] == pytest.approx(np.full(20, 5_000), abs=350)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.02
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.02

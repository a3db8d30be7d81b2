"""Kept cells: their unit, their bins, and what a window makes of a partition."""

import re

import numpy as np
import pyarrow as pa
import pytest

from mcspark.core.cells.cells import Role
from mcspark.core.cells.levels import ScoreBins
from mcspark.errors import ContractError, McsparkError
from mcspark.ml.cells.cell_sums import PLACE, SPREAD
from mcspark.ml.cells.kept_cells import _fitted, refuse_weights, shared_scale, window_bins

OWN, COARSE = ScoreBins(2, (2, 2)), ScoreBins.uniform(2)
EVERY = np.ones(len(Role), dtype=bool)
SCALE = shared_scale(1.0)


def block(**changed):
    """Three cells: of the fitting, the early-stopping and the test rows, in the bins 1, 5 and 7."""
    columns = {
        "__family_0": pa.array([1, 2, None], pa.int64()).dictionary_encode(),
        PLACE: np.array([1, 8 + 5, 16 + 7]),
        SPREAD: np.array([11, 12, 13]),
        "n": np.array([3, 2, 1]),
        **{
            name: np.array([30, 20, 10]) for name in ("score", "label", "score_sq", "label_sq", "score_label")
        },
    }
    return pa.table({name: column for name, column in {**columns, **changed}.items() if column is not None})


def fitted(cells, **how):
    given = {
        "kinds": "__family_0 bigint",
        "own": OWN,
        "bins": COARSE,
        "roles": EVERY,
        "held_out": False,
        "scale": None,
    }
    return _fitted(cells, **{**given, **how})


def test_a_partition_gets_the_bins_of_the_window():
    assert fitted(block())[PLACE].to_pylist() == [0, 2 + 1, 4 + 1]


def test_a_partition_that_is_held_out_has_test_rows_alone():
    held_out = fitted(block(), held_out=True)
    assert held_out[PLACE].to_pylist() == [4, 5, 5]
    test = np.arange(len(Role)) == Role.test
    assert len(fitted(block(), roles=test)) == 1
    assert len(fitted(block(), roles=test, held_out=True)) == 3


def test_a_partition_that_weighs_less_has_rows_all_the_same():
    found = fitted(block(), scale=(0.25, SCALE))
    assert found["n"].to_pylist() == [3, 2, 1]
    assert found["score"].to_pylist() == [8, 5, 2]  # halves to even
    assert found["weight"].to_pylist() == [int(n * 2**30 * 0.25) for n in (3, 2, 1)]
    assert found["weight_sq"].to_pylist() == [int(n * 2**30 * 0.0625) for n in (3, 2, 1)]
    weighted = block(weight=np.array([8, 16, 24]), weight_sq=np.array([16, 32, 64]))
    found = fitted(weighted, scale=(0.5, SCALE))
    assert (found["weight"].to_pylist(), found["weight_sq"].to_pylist()) == ([4, 8, 12], [4, 8, 16])


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"score": None}, "have the columns"),
        ({"weight": np.array([1, 2, 3])}, "a column weight"),
        ({"n": np.array([1.0, 2.0, 3.0])}, "a column n of double"),
        ({"__family_0": pa.array(["a", "b", None]).dictionary_encode()}, "a column __family_0 of dict"),
        ({PLACE: np.array([1, 2, 24])}, "outside of their bins"),
        ({PLACE: np.array([-1, 2, 3])}, "outside of their bins"),
    ],
)
def test_blocks_that_are_no_cells_are_refused(changed, match):
    with pytest.raises(McsparkError, match=match):
        fitted(block(**changed))


def test_the_unit_is_a_power_of_two_near_the_typical_weight():
    assert (SCALE.weight, SCALE.weight_sq) == (2.0**30, 2.0**30)
    assert (shared_scale(100.0).weight, shared_scale(100.0).weight_sq) == (2.0**23, 2.0**16)


@pytest.mark.parametrize("mean", [1e-4, 1e4])
def test_weights_far_from_the_unit_are_refused_with_the_right_one(mean):
    refuse_weights(SCALE, 1000, 500e3, 250e6, "scored")
    with pytest.raises(ContractError, match=re.escape(f"weigh {mean:g} on average")):
        refuse_weights(SCALE, 1000, 1000 * mean, 1000 * mean**2, "scored")


def test_sums_that_would_not_fit_are_refused():
    with pytest.raises(ContractError, match=r"typical_weight"):
        refuse_weights(SCALE, 2**33, 2.0**33, 2.0**33, "scored")


def test_the_bins_of_a_window_depend_on_no_order_of_its_partitions():
    bins = [ScoreBins(2, (3, 0)), ScoreBins(2, (1, 2)), ScoreBins(2, (2, 2))]
    rng = np.random.default_rng(1)
    weights = [rng.integers(0, 2**45, b.n_bins) for b in bins]
    found = window_bins(bins, weights, 4)
    assert window_bins(bins[::-1], weights[::-1], 4) == found
    assert all(depth <= least for depth, least in zip(found.depth, (1, 0), strict=True))

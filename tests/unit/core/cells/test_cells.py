import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mcspark.core.cells.cells import SUMS, Cells, Role
from mcspark.core.cells.levels import ScoreBins, level_index, level_value

BINS = ScoreBins(60, (0, 1, 2) * 20)
GROUPS = 4


@st.composite
def tables(draw):
    n = draw(st.integers(0, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ticks = draw(st.sampled_from([4, 60, 10_000]))
    return {
        "score": rng.integers(0, ticks + 1, n) / ticks,
        "label": rng.random(n),
        "membership": rng.random((n, GROUPS)) < 0.4,
        "weight": rng.integers(0, 3, n).astype(float),
        "role": rng.integers(0, 3, n),
    }


def cells_of(table):
    return Cells.from_rows(bins=BINS, **table)


def row_values(t):
    w, f, y = t["weight"], t["score"], t["label"]
    return dict(
        zip(SUMS, (np.ones(len(f)), w, w * w, w * f, w * y, w * f * f, w * y * y, w * f * y), strict=True)
    )


@given(tables())
@settings(max_examples=40, deadline=None)
def test_a_cell_holds_the_sums_of_its_rows(table):
    cells = cells_of(table)
    rows = row_values(table)
    place = BINS.assign(table["score"])
    found = set()
    for c in range(len(cells)):
        mine = (
            (place == cells.bin[c])
            & (table["role"] == cells.role[c])
            & (table["membership"] == cells.membership[cells.signature[c]]).all(axis=1)
        )
        assert mine.any()
        found.update(np.flatnonzero(mine))
        for name in SUMS:
            assert getattr(cells, name)[c] == pytest.approx(rows[name][mine].sum(), abs=1e-12)
    assert found == set(range(len(place)))
    keys = list(zip(cells.bin, cells.signature, cells.role, strict=True))
    assert len(set(keys)) == len(keys)


@given(tables(), st.sampled_from([None, 1, 10, 60]))
@settings(max_examples=40, deadline=None)
def test_sums_over_groups_and_levels_equal_brute_force(table, m):
    cells = cells_of(table)
    place = BINS.assign(table["score"]) if m is None else level_index(table["score"], m)
    size = BINS.n_bins if m is None else m
    for name, value in row_values(table).items():
        expected = np.zeros((GROUPS, size))
        for i, g in itertools.product(range(len(place)), range(GROUPS)):
            expected[g, place[i]] += value[i] * table["membership"][i, g]
        assert_allclose(cells.group_sums(name, m), expected, atol=1e-12)
        assert_allclose(cells.level_sums(name, m), np.bincount(place, value, size), atol=1e-12)


@given(tables(), st.sampled_from([None, 1, 10, 60]))
@settings(max_examples=40, deadline=None)
def test_loss_is_the_mean_squared_distance(table, m):
    loss = cells_of(table).loss(m)
    if not table["weight"].any():
        assert np.isnan(loss)
        return
    value = table["score"] if m is None else level_value(level_index(table["score"], m), m)
    expected = np.average((value - table["label"]) ** 2, weights=table["weight"])
    assert loss == pytest.approx(expected, abs=1e-12)


@given(tables())
@settings(max_examples=40, deadline=None)
def test_weight_two_is_the_row_twice(table):
    copies = np.repeat(np.arange(len(table["score"])), table["weight"].astype(int))
    copied = {name: value[copies] for name, value in table.items()} | {"weight": np.ones(len(copies))}
    once, twice = cells_of(table), cells_of(copied)
    for name in ("weight", "score", "label", "score_sq", "label_sq", "score_label"):
        assert_allclose(once.group_sums(name), twice.group_sums(name), rtol=1e-12, atol=1e-12)


@given(tables(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_the_order_of_rows_does_not_matter(table, random):
    order = list(range(len(table["score"])))
    random.shuffle(order)
    a, b = cells_of(table), cells_of({name: value[order] for name, value in table.items()})
    for name in ("bin", "signature", "role", "membership", "n"):
        assert_array_equal(getattr(a, name), getattr(b, name))
    for name in SUMS:
        assert_allclose(getattr(a, name), getattr(b, name), atol=1e-12)


@given(tables())
@settings(max_examples=30, deadline=None)
def test_roles_part_the_cells(table):
    cells = cells_of(table)
    parts = [cells.of_role(role) for role in Role]
    assert sum(len(part) for part in parts) == len(cells)
    for role, part in zip(Role, parts, strict=True):
        own = {name: value[table["role"] == role] for name, value in table.items()}
        assert_allclose(part.group_sums("label"), cells_of(own).group_sums("label"), atol=1e-12)
    both = cells.of_role(Role.fit, Role.early_stopping)
    assert len(both) == len(parts[0]) + len(parts[1])


def test_signatures_are_the_distinct_rows_in_order():
    membership = np.random.default_rng(0).random((500, 11)) < 0.3
    n = len(membership)
    cells = Cells.from_rows(np.full(n, 0.5), np.zeros(n), membership, bins=BINS)
    assert_array_equal(cells.membership, np.unique(membership, axis=0))
    assert cells.groups[:2] == ("g0", "g1")


def test_no_groups_and_no_rows():
    alone = Cells.from_rows(np.array([0.1, 0.9]), np.array([0.0, 1.0]), np.zeros((2, 0), bool), bins=BINS)
    assert len(alone) == 2
    assert alone.group_sums("weight").shape == (0, BINS.n_bins)
    assert alone.loss() == pytest.approx(0.01)
    empty = Cells.from_rows(np.zeros(0), np.zeros(0), np.zeros((0, 3), bool), bins=BINS)
    assert len(empty) == 0
    assert empty.group_sums("weight", 10).sum() == 0


def test_group_sums_of_a_value_of_ones_own():
    table = {
        "score": np.array([0.1, 0.1, 0.9]),
        "label": np.zeros(3),
        "membership": np.array([[1, 0], [1, 1], [0, 1]], bool),
    }
    cells = Cells.from_rows(bins=BINS, groups=("a", "b"), **table)
    assert cells.groups == ("a", "b")
    assert_allclose(cells.group_sums_of(cells.n * 10).sum(axis=1), [20, 20])


@pytest.mark.parametrize("depth", [0, 3])
def test_the_mean_score_of_a_cell_stays_in_its_bin(depth):
    """Scores of two decimals are edges of bins, and the sums of a large population are rounded."""
    rng = np.random.default_rng(5)
    score = np.repeat(np.arange(100) / 100, 9)
    weight = rng.integers(1, 8, len(score)).astype(float)
    bins = ScoreBins(100, (depth,) * 100)
    cells = Cells.from_rows(score, score, np.zeros((len(score), 0), bool), bins=bins, weight=weight)
    rounded = replace(cells, score=np.rint(cells.score * 2.0**30) / 2.0**30)
    assert np.count_nonzero(bins.assign(np.clip(rounded.score / rounded.weight, 0, 1)) != cells.bin) > 20
    assert_array_equal(bins.assign(rounded.mean_score), cells.bin)
    assert_allclose(rounded.mean_score, np.unique(score), atol=1e-8)


def test_cells_of_several_bins_stand_at_their_mean_wherever_it_is():
    score = np.array([0.1, 0.5, 0.9])
    cells = Cells.from_rows(score, score, np.zeros((3, 0), bool), bins=BINS).merged(np.array([0, 0, 0]))
    assert cells.mean_score == pytest.approx([0.5])

"""What every error is, whatever the table: invariances and bounds, against the definition on rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables_of_rows import rows

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.calibration_error import level_errors
from mcspark.core.metrics.smooth_ece import group_smooth_ece, smooth_ece

GRIDS = (1, 5, 10, 15, 20)
tried = settings(max_examples=150, deadline=None)


def cells_of(table, base=60):
    return Cells.from_rows(
        table.score, table.label, table.member, bins=ScoreBins.uniform(base), weight=table.weight
    )


def by_definition(table, m):
    """MC and MA error of each group, row after row, in plain Python."""
    mc, ma = [], []
    for g in range(table.member.shape[1]):
        sums: dict[int, float] = {}
        for f, y, w, member in zip(table.score, table.label, table.weight, table.member[:, g], strict=True):
            if member:
                k = min(int(f * m + 1e-9), m - 1)
                k -= f < k / m
                sums[k] = sums.get(k, 0.0) + w * ((2 * k + 1) / (2 * m) - y)
        mc.append(sum(abs(s) for s in sums.values()) / table.weight.sum())
        ma.append(abs(sum(sums.values())) / table.weight.sum())
    return np.array(mc), np.array(ma)


@given(rows(), st.sampled_from(GRIDS))
@tried
def test_the_errors_are_those_of_the_definition(table, m):
    errors = level_errors(cells_of(table), m)
    mc, ma = by_definition(table, m)
    np.testing.assert_allclose(errors.mc, mc, atol=1e-12)
    np.testing.assert_allclose(errors.ma, ma, atol=1e-12)


@given(rows(), st.sampled_from(GRIDS))
@tried
def test_no_error_is_below_its_multiaccuracy_or_above_its_share(table, m):
    errors = level_errors(cells_of(table), m)
    share = (table.weight[:, None] * table.member).sum(axis=0) / table.weight.sum()
    assert (errors.ma <= errors.mc + 1e-12).all()
    assert (errors.mc <= share + 1e-12).all()
    for pair in zip(np.flatnonzero(errors.mc >= 0), errors.mc, strict=True):
        assert np.isfinite(pair).all()


@given(rows(), st.sampled_from([1, 5]), st.sampled_from([3, 9]))
@tried
def test_refining_a_grid_never_lowers_the_error(table, m, factor):
    """Of scores at the middles of levels, which an odd refinement leaves where they are."""
    middle = (2 * np.minimum((table.score * m).astype(int), m - 1) + 1) / (2 * m)
    cells = cells_of(replace(table, score=middle), base=45)
    coarse, fine = level_errors(cells, m), level_errors(cells, m * factor)
    assert (fine.mc >= coarse.mc - 1e-12).all()
    np.testing.assert_allclose(fine.ma, coarse.ma, atol=1e-12)


@given(rows(), st.randoms(use_true_random=False), st.sampled_from(GRIDS))
@tried
def test_order_and_parts_of_rows_change_nothing(table, random, m):
    order = list(range(len(table.score)))
    random.shuffle(order)
    errors, again = (level_errors(cells_of(t), m) for t in (table, table.take(np.array(order))))
    np.testing.assert_allclose(again.mc, errors.mc, atol=1e-12)
    # Every row in two parts of its weight, the second one at the end of the table.
    parts = np.array([random.random() for _ in order])
    twice = table.take(np.concatenate([np.arange(len(order))] * 2))
    twice = replace(twice, weight=np.concatenate([table.weight * parts, table.weight * (1 - parts)]))
    split = level_errors(cells_of(twice), m)
    np.testing.assert_allclose(split.mc, errors.mc, atol=1e-12)
    np.testing.assert_allclose(split.loss, errors.loss, atol=1e-12)


@given(rows(), st.permutations(range(3)), st.sampled_from(GRIDS))
@tried
def test_names_order_and_number_of_groups_change_nothing(table, order, m):
    errors = level_errors(cells_of(table), m)
    renamed = replace(cells_of(table), groups=("x", "y", "z"))
    np.testing.assert_array_equal(level_errors(renamed, m).mc, errors.mc)
    moved = replace(table, member=table.member[:, list(order)])
    np.testing.assert_allclose(level_errors(cells_of(moved), m).mc, errors.mc[list(order)], atol=1e-12)
    empty = replace(table, member=np.column_stack([table.member, np.zeros(len(table.score), dtype=bool)]))
    more = level_errors(cells_of(empty), m)
    np.testing.assert_allclose(more.mc, [*errors.mc, 0.0], atol=1e-12)
    assert more.mc_error == pytest.approx(errors.mc_error, abs=1e-12)


@given(rows(), st.sampled_from(GRIDS))
@tried
def test_complements_have_the_same_errors(table, m):
    """1 − score against 1 − label; scores at the middles of a finer grid, since edges belong to one side."""
    score = (2 * np.minimum((table.score * 60).astype(int), 59) + 1) / 120
    table = replace(table, score=score)
    other = replace(table, score=1 - score, label=1 - table.label)
    one, two = level_errors(cells_of(table), m), level_errors(cells_of(other), m)
    np.testing.assert_allclose(two.mc, one.mc, atol=1e-12)
    np.testing.assert_allclose(two.ma, one.ma, atol=1e-12)
    np.testing.assert_allclose(two.loss, one.loss, atol=1e-12)


@given(rows(least=3))
@settings(max_examples=60, deadline=None)
def test_smooth_ece_is_that_of_the_rows_and_no_larger_than_the_share(table):
    cells = Cells.from_rows(
        table.score, table.label, table.member, bins=ScoreBins.uniform(1200), weight=table.weight
    )
    found = group_smooth_ece(cells)
    for g, value in enumerate(found.groups):
        inside = table.member[:, g] & (table.weight > 0)
        if inside.any():
            rows_alone = smooth_ece(table.score[inside], table.label[inside], table.weight[inside])
            assert value == pytest.approx(rows_alone, abs=2e-3)
            assert 0 <= value <= 1 + 1e-9

"""Cells by Spark against cells by NumPy, and exact whatever the order of the rows."""

from __future__ import annotations

from dataclasses import asdict, fields, replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from mcspark.core.cells.cells import SUMS, Cells, Role
from mcspark.core.cells.levels import MAX_DEPTH, ScoreBins
from mcspark.errors import ContractError, McsparkError
from mcspark.ml.cells import cells as cells_module
from mcspark.ml.cells import driver_cells
from mcspark.ml.cells.cells import ScoredColumns, choose_bins, make_cells
from mcspark.ml.cells.fixed_point import FixedPoint
from mcspark.ml.cells.groups import GroupSet, with_categories
from mcspark.ml.learning import labelled_cells
from mcspark.runtime.tasks import blocks

COLUMNS = ScoredColumns("score", "label", "w", "split")
# 24 columns of up to seven values and 20 predicates: 92 bits, two words.
SECTION = {
    "min_share": 0.0,
    "columns": [{"column": f"c{i}"} for i in range(24)],
    "predicates": [{"name": f"p{i}", "where": f"c{i} > 3 OR c{i + 1} = 0"} for i in range(20)],
}
ROWS = 1500
BINS = ScoreBins(300, tuple(j % 3 for j in range(300)))


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 7, (ROWS, 24))
    codes[:, 2:] *= rng.random((ROWS, 1)) < 0.2  # many rows share a signature
    codes[:, :2] %= 2
    edges = np.arange(301) / 300
    score = rng.choice(np.concatenate([edges, rng.random(300)]), ROWS)
    label = np.where(rng.random(ROWS) < 0.5, np.round(rng.random(ROWS)), rng.random(ROWS))
    weight = np.where(rng.random(ROWS) < 0.05, 0.0, rng.lognormal(0, 2, ROWS))
    return codes, score, label, weight, rng.choice(3, ROWS)


@pytest.fixture(scope="module")
def plan():
    return GroupSet.from_config(SECTION)


@pytest.fixture(scope="module")
def frame(spark, plan):
    codes, score, label, weight, role = arrays()
    table = pd.DataFrame(codes, columns=[f"c{i}" for i in range(24)])
    table = table.assign(score=score, label=label, w=weight, split=[Role(r).name for r in role])
    kept = with_categories(spark.createDataFrame(table), plan.families).persist()
    yield kept
    kept.unpersist()


def collected(frame, plan, columns=COLUMNS, bins=BINS, most=None):
    scale = FixedPoint.of(frame, columns.weight)
    with make_cells(frame, columns, plan.families, bins, scale) as table:
        groups = plan.fit(table.profiles, "weight")
        return table.collect(groups, **({} if most is None else {"most": most}))


@pytest.fixture(scope="module")
def cells(frame, plan):
    return collected(frame, plan)


def by_key(cells):
    """Cells in an order that depends on nothing but their content."""
    member = cells.membership[cells.signature]
    order = np.lexsort((*member.T, cells.bin, cells.role))
    key = np.column_stack([cells.role, cells.bin, member])[order]
    return key, {name: getattr(cells, name)[order] for name in SUMS}


def reference(plan, names, bins=BINS, weighted=True, with_role=True):
    codes, score, label, weight, role = arrays()
    column = {f"c{i}": codes[:, i] for i in range(24)}
    member = [column[name.split("=")[0]] == int(name.split("=")[1]) for name in names if name[0] == "c"]
    member += [(column[f"c{i}"] > 3) | (column[f"c{i + 1}"] == 0) for i in range(20)]
    return Cells.from_rows(
        score, label, np.column_stack(member), bins=bins, groups=names,
        weight=weight if weighted else None, role=role if with_role else np.full(ROWS, 2),
    )  # fmt: skip


def assert_equal(found, expected):
    assert found.groups == expected.groups
    assert found.bins == expected.bins
    (key, sums), (expected_key, expected_sums) = by_key(found), by_key(expected)
    assert np.array_equal(key, expected_key)
    assert np.array_equal(sums["n"], expected_sums["n"])
    for name in SUMS:
        # Each row is rounded to about 2**-60 of the total.
        total = expected_sums[name].sum()
        np.testing.assert_allclose(sums[name], expected_sums[name], rtol=1e-14, atol=1e-14 * total)


def test_cells_equal_numpy(cells, plan):
    assert_equal(cells, reference(plan, cells.groups))
    assert len(cells) < ROWS  # some cells hold several rows


def test_without_weight_and_split(frame, plan):
    found = collected(frame, plan, ScoredColumns("score", "label"))
    assert_equal(found, reference(plan, found.groups, weighted=False, with_role=False))
    assert set(found.role.tolist()) == {int(Role.test)}
    assert np.array_equal(found.weight, found.n)


@pytest.mark.parametrize("partitions", [1, 7])
def test_no_order_of_rows_changes_a_bit(frame, plan, cells, partitions):
    shuffled = frame.orderBy(F.xxhash64("score", "w", F.lit(partitions))).repartition(partitions)
    found = collected(shuffled, plan)
    for field in fields(Cells):
        one, other = getattr(cells, field.name), getattr(found, field.name)
        assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other, field.name


def test_sums_of_weights_are_exact(frame, cells):
    """Σw over any set of cells is the sum of the rounded weights, without a rounding error of its own."""
    weight = arrays()[3]
    scale = FixedPoint.of(frame, "w").weight
    assert cells.weight.sum() * scale == sum(round(w * scale) for w in weight)


@pytest.mark.parametrize("weight", [1e-100, 1e100, 123.456])
def test_the_unit_of_the_weights_is_free(frame, plan, cells, weight):
    found = collected(frame.withColumn("w", F.col("w") * weight), plan)
    np.testing.assert_allclose(
        found.weight / weight, cells.weight, rtol=1e-9, atol=1e-15 * cells.weight.sum()
    )


@pytest.mark.parametrize("weight", [0.0, 1e200, 1e-200])
def test_weights_that_cannot_be_summed_are_refused(frame, weight):
    with pytest.raises(ContractError, match="weight"):
        FixedPoint.of(frame.withColumn("w", F.lit(weight)), "w")


def test_collected_in_pieces_is_the_same(frame, plan, cells, monkeypatch):
    monkeypatch.setattr(blocks, "byte_count", lambda size: 4 * len(cells) * 8 * len(SUMS) / 3)
    found = collected(frame, plan)
    for name in ("bin", "signature", "role", *SUMS):
        assert np.array_equal(getattr(found, name), getattr(cells, name)), name


def test_reduced_in_many_parts_is_the_same(frame, plan, cells, monkeypatch):
    monkeypatch.setattr(blocks, "_ROWS_IN_BLOCK", 7)
    found = collected(frame, plan)
    for name in ("bin", "signature", "role", *SUMS):
        assert np.array_equal(getattr(found, name), getattr(cells, name)), name


def plain(value):
    """Arrays as lists, which compare."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize(
    ("names", "learned"),
    [
        (COLUMNS, {"columns": [{"column": "c3"}, {"column": "c0"}]}),
        (replace(COLUMNS, weight=None), None),
    ],
)
def test_of_few_rows_the_driver_makes_the_same_cells_bins_and_groups(frame, monkeypatch, names, learned):
    section = {"min_share": 0.01, "intersections": 2, "columns": [{"column": "c0"}, {"column": "c2"}]}
    plan = GroupSet.from_config(section, learned)
    rows = with_categories(
        frame.where("c5 > 0 OR c0 = 1").withColumn("c2", F.expr("nullif(c2, 0)")), plan.signed
    )
    scale, n = FixedPoint.counted(rows, names.weight)
    found = labelled_cells(rows, names, plan, [10, 15], 40, scale, n)
    alone = make_cells(rows, names, plan.signed, found[0].bins, scale, rows=n).collect_chosen(plan)
    monkeypatch.setattr(driver_cells, "_FEW", 0)
    many = labelled_cells(rows, names, plan, [10, 15], 40, scale, n)
    assert max(many[0].bins.depth) > 0 < len(many[1].pairs)
    assert found[1] == alone[1] == many[1]
    assert plain(asdict(found[0])) == plain(asdict(alone[0])) == plain(asdict(many[0]))


def test_few_rows_without_weight_or_without_any_are_refused_as_many_are(frame, plan, monkeypatch):
    for rows in (frame.withColumn("w", F.lit(0.0)), frame.limit(0)):
        found = []
        for most in (10**6, 0):
            monkeypatch.setattr(driver_cells, "_FEW", most)
            with (
                pytest.raises(ContractError) as refused,
                make_cells(rows, COLUMNS, plan.families, BINS, FixedPoint(1.0, 1.0), rows=1) as table,
            ):
                table.collect_chosen(plan)
            found.append(str(refused.value))
        assert found[0] == found[1]


def test_what_is_missing_in_one_column_is_not_what_is_missing_in_the_other(spark):
    plan = GroupSet.from_config({"min_share": 0.0, "columns": [{"column": "a"}, {"column": "b"}]})
    rows = [(5, None, 0.1, 1.0), (None, 5, 0.1, 0.0), (None, None, 0.1, 0.0), (5, 5, 0.1, 1.0)]
    table = spark.createDataFrame(rows, "a int, b int, score double, label double")
    found = collected(with_categories(table, plan.families), plan, ScoredColumns("score", "label"))
    assert found.groups == ("a=5", "b=5")
    labels = {
        tuple(m): v for m, v in zip(found.membership[found.signature].tolist(), found.label, strict=True)
    }
    assert labels == {(True, False): 1, (False, True): 0, (False, False): 0, (True, True): 1}


def test_two_combinations_with_one_hash_are_not_mixed_up():
    same = pa.table({
        "__place": [1, 1], "__spread": [5, 5], "__family_0": pa.array(["a", "b"]).dictionary_encode(),
        **{name: [1, 1] for name in SUMS},
    })  # fmt: skip
    with pytest.raises(McsparkError, match="one hash"):
        cells_module.merged_cells(same)


def test_too_many_cells_are_merged_and_then_refused(frame, plan, cells):
    flat = len(collected(frame, plan, bins=ScoreBins.uniform(300)))
    assert flat < len(cells)
    merged = collected(frame, plan, most=flat)
    assert merged.bins == ScoreBins.uniform(300)
    assert_equal(merged, reference(plan, merged.groups, bins=merged.bins))
    with pytest.raises(ContractError, match="min_share"):
        collected(frame, plan, most=flat - 1)


def test_bins_are_finer_where_scores_are_dense(frame):
    scale = FixedPoint.of(frame, "w")
    _, score, _, weight, _ = arrays()
    found = choose_bins(frame, COLUMNS, 300, 40, scale)
    fine = np.bincount(
        ScoreBins(300, (MAX_DEPTH,) * 300).assign(score), weights=weight, minlength=300 * 2**MAX_DEPTH
    )
    assert found == ScoreBins.from_fine_weights(300, fine, 40)
    assert choose_bins(frame, COLUMNS, 300, 0, scale) == ScoreBins.uniform(300)


def test_a_part_of_the_split_without_weight_beside_the_others_is_refused(spark):
    plan = GroupSet.from_config({"min_share": 0.0, "columns": [{"column": "c"}]})
    rows = [(0.25, 1.0, 1e6, "fit", "a"), (0.5, 0.0, 1e6, "early_stopping", "a")]
    for light, refused in ((1e-13, True), (0.0, False), (4.0, False)):
        table = [*rows, (0.75, 1.0, light, "test", "a")]
        frame = spark.createDataFrame(table, "score double, label double, w double, split string, c string")
        frame = with_categories(frame, plan.families)
        if refused:
            with pytest.raises(ContractError, match=r"one part of the split .* holds .* of the weight"):
                collected(frame, plan)
        else:
            cells = collected(frame, plan)
            assert cells.weight[cells.role == Role.test].tolist() == [light]

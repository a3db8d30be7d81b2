"""Cells that stay in the cluster say what the same cells on the driver say, however they are dealt out."""

from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from mcspark.config.calibrator import MAX_DRIVER_CELLS as MOST_IN_CONFIGURATION
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.metrics import measure
from mcspark.ml.cells.cells import MAX_DRIVER_CELLS, FixedPoint, ScoredColumns, make_cells
from mcspark.ml.cells.groups import GroupSet, with_categories
from mcspark.ml.cluster.cluster_cells import CellLimit, ClusterCells, judged_cells
from tests.tiny import tiny_tables

ROWS, LEVELS, DRAWS = 4000, [10, 20], 60
BINS = ScoreBins(20, (2,) * 20)
SECTION = {
    "min_share": 0.1,
    "columns": [{"column": "a"}, {"column": "b"}, {"column": "c", "bins": [0, 3, 7, 100]}],
    "predicates": [{"name": "few", "where": "a = 1 AND c > 8"}],
    "intersections": 2,
}
FEW, MANY = CellLimit(1, "a test"), CellLimit(10**6, "a test")


def people(kind: str) -> pd.DataFrame:
    """Rows of one kind: labels of 0 and 1 and no weights, or labels in [0, 1] and weights, some of them 0."""
    rng = np.random.default_rng(len(kind))
    table = pd.DataFrame({name: rng.integers(1, n, ROWS) for name, n in (("a", 4), ("b", 6), ("c", 12))})
    table["score"] = np.where(rng.random(ROWS) < 0.3, np.round(rng.random(ROWS), 1), rng.random(ROWS))
    truth = np.clip(table["score"] + 0.2 * (table["a"] == 2) - 0.15 * (table["b"] == 3), 0, 1)
    if kind == "binary":
        table["label"] = (rng.random(ROWS) < truth).astype(float)
    else:
        table["label"] = np.clip(truth + 0.2 * rng.standard_normal(ROWS), 0, 1)
        table["w"] = rng.lognormal(0, 1, ROWS) * (rng.random(ROWS) < 0.95)
    table["split"] = rng.choice(["fit", "test"], ROWS, p=[0.3, 0.7])
    return table


@contextmanager
def judged(spark, table, limit, partitions=2):
    plan = GroupSet.from_config(SECTION)
    names = ScoredColumns("score", "label", "w" if "w" in table else None, "split")
    frame = with_categories(spark.createDataFrame(table).repartition(partitions), plan.families)
    with (
        make_cells(frame, names, plan.families, BINS, FixedPoint.of(frame, names.weight)) as made,
        judged_cells(made, plan, Role.test, limit) as found,
    ):
        yield found


def measured(cells, draws=DRAWS):
    return measure(
        cells, LEVELS, draws=draws, seed=5, min_rows=30, intervals=True, thresholds=[Fraction(1, 2)]
    )  # fmt: skip


@pytest.fixture(scope="module", params=["binary", "fractional"])
def both(spark, request):
    """The test rows, their metrics on the driver, and those of the cluster on two and on seven partitions."""
    table = people(request.param)
    with tiny_tables(spark):
        with judged(spark, table, MANY) as found:
            assert isinstance(found.cells, Cells)
            driver, signatures = measured(found.cells, 5 * DRAWS), found.signatures
        cluster = []
        for partitions in (2, 7):
            spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
            with judged(spark, table, FEW, partitions) as found:
                assert isinstance(found.cells, ClusterCells)
                assert found.signatures == signatures
                cluster.append(measured(found.cells))
    return table[table["split"] == "test"], driver, cluster


def by_name(metrics):
    return {(r.metric, r.group, r.levels, r.level): r.value for r in metrics.table()}


def of_chance(name):
    return name.startswith(("noise_floor", "ma_noise_floor")) or name.endswith(("p_value", "_low", "_high"))


def test_what_is_no_matter_of_chance_is_the_same(both):
    _, driver, (cluster, _) = both
    one, other = by_name(driver), by_name(cluster)
    assert list(one) == list(other)
    for key, value in one.items():
        if not of_chance(key[0]) or key[0] == "ecce_p_value":
            assert other[key] == pytest.approx(value, rel=1e-9, abs=1e-12), key


def test_partitions_change_no_digit(both):
    _, _, (one, other) = both
    assert one.summary() == other.summary()
    assert list(one.table()) == list(other.table())


def test_chance_does_the_same_as_on_the_driver(both):
    _, driver, (cluster, _) = both
    for m in (*LEVELS, None):
        one, other = driver.floors[m], cluster.floors[m]
        spread = one.quantiles[0.95] - one.quantiles[0.05]
        assert other.observed == pytest.approx(one.observed, rel=1e-9)
        # The mean of 60 draws is known to an eighth of their standard deviation, a third of the spread.
        assert other.expected == pytest.approx(one.expected, abs=0.2 * spread)
        for q in (0.05, 0.95):
            assert other.quantiles[q] == pytest.approx(one.quantiles[q], abs=0.4 * spread)
    pairs = [(driver.intervals.mc_error[m], cluster.intervals.mc_error[m]) for m in LEVELS]
    for one, other in [*pairs, (driver.intervals.smece, cluster.intervals.smece)]:
        width = one.high - one.low
        assert other.estimate == pytest.approx(one.estimate, rel=1e-9)
        assert (other.low, other.high) == pytest.approx((one.low, one.high), abs=0.3 * width)


def test_rows_say_the_same(both):
    rows, _, (found, _) = both
    weight = rows["w"].to_numpy() if "w" in rows else np.ones(len(rows))
    score, label = rows["score"].to_numpy(), rows["label"].to_numpy()
    assert found.loss == pytest.approx(np.average((score - label) ** 2, weights=weight), rel=1e-9)
    level = np.minimum((score * 20).astype(int), 19)
    inside = (rows["a"] == 2).to_numpy()
    gap = np.bincount(level[inside], (weight * ((2 * level + 1) / 40 - label))[inside], 20)
    name = [g.group for g in found.groups].index("a=2")
    assert found.by_level[20].mc[name] == pytest.approx(np.abs(gap).sum() / weight.sum(), rel=1e-9)
    if "w" not in rows:  # cells of equal signature within a bin are ties, which moves areas a little
        assert found.scores["auc"].value == pytest.approx(roc_auc_score(label, score), abs=2e-3)
        assert found.scores["pr_auc"].value == pytest.approx(average_precision_score(label, score), abs=2e-3)


def test_the_limit_is_one():
    assert MOST_IN_CONFIGURATION == MAX_DRIVER_CELLS

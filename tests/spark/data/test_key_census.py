import numpy as np
import pytest
from pyspark.sql import functions as F

from mcspark.data.rows.keys import census_of, key_census

KEY = ["house", "person"]


def table(spark, rows, types="house string, person bigint"):
    return spark.createDataFrame(rows, types)


def test_repeated_and_absent_keys_are_those_of_a_plain_count(spark):
    rng = np.random.default_rng(0)
    scored = [(f"h{i}", 1) for i in rng.permutation(3000)]
    left = [(f"h{i}", 1) for i in range(500, 3500)]
    right = [(f"h{i}", 1) for i in range(2000)] + [("h7", 1)]
    found = key_census([table(spark, scored), table(spark, left), table(spark, right)], KEY)
    assert found.repeated == (False, False, True)
    assert found.absent == (500, 1000)
    assert found.unused == (500, 0)


def test_rows_with_a_null_in_the_key_are_not_looked_at(spark):
    scored = table(spark, [("a", 1), (None, 1), (None, 1), ("a", None), ("a", None)])
    other = table(spark, [("a", 1), (None, 1), (None, 1)])
    found = key_census([scored, other], KEY)
    assert found.repeated == (False, False)
    assert found.absent == (0,)


def test_whole_numbers_of_other_widths_are_the_same_key(spark):
    scored = table(spark, [("a", 1), ("b", 2)])
    other = table(spark, [("b", 2)], "house string, person int")
    assert key_census([scored, other], KEY).absent == (1,)


def test_keys_of_other_types_are_not_compared_but_checked(spark):
    scored = table(spark, [("a", 1), ("a", 1)])
    other = scored.select("house", F.col("person").cast("decimal(10,2)").alias("person"))
    found = key_census([scored, other], KEY)
    assert found.repeated == (True, True)
    assert (found.absent, found.unused) == ((None,), (None,))


def test_empty_tables(spark):
    empty, one = table(spark, []), table(spark, [("a", 1)])
    assert key_census([empty, empty], KEY).absent == (0,)
    assert key_census([one, empty], KEY).absent == (1,)
    assert key_census([empty, one], KEY).repeated == (False, False)


@pytest.mark.parametrize("seed", range(5))
def test_counts_of_sorted_hashes(seed):
    rng = np.random.default_rng(seed)
    tables = [np.sort(rng.integers(0, 60, size)) for size in (50, 40, 0)]
    expected = [len(t) - len(set(t.tolist())) for t in tables]
    expected += [sum(x not in set(t.tolist()) for x in tables[0].tolist()) for t in tables[1:]]
    expected += [sum(x not in set(tables[0].tolist()) for x in t.tolist()) for t in tables[1:]]
    assert census_of(tables) == expected

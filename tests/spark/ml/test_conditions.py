"""Conditions of groups over values that cannot be computed with: no member, and the same in every mode."""

from __future__ import annotations

import pytest

from mcspark.errors import ContractError
from mcspark.ml.cells.cells import ScoredColumns
from mcspark.ml.cells.groups import GroupSet, with_categories
from mcspark.ml.cells.signatures import category_name
from mcspark.ml.cells.working import working_columns
from mcspark.predicates import computed

ROWS = [
    ("070", 5, 0, 3_000_000_000),
    ("A1", 2_147_483_647, 2, 7),
    (None, -2_147_483_648, -1, None),
    ("", None, None, -3_000_000_000),
]
MEMBERS = {
    "code >= 65": [1, 0, 0, 0],
    "code = 70": [1, 0, 0, 0],
    "code BETWEEN 60 AND 80": [1, 0, 0, 0],
    "cast(code AS int) > 1": [1, 0, 0, 0],
    "a + 1 <> 0": [1, 0, 1, 0],
    "a - 1 <> 0": [1, 1, 0, 0],
    "a * 2 <> 0": [1, 0, 0, 0],
    "a / z <> 0": [0, 1, 1, 0],
    "a % z >= -9": [0, 1, 1, 0],
    "a div z <> 0": [0, 1, 1, 0],
    "a % 0 = 0 or a / 0 = 1 or a div 0 = 1": [0, 0, 0, 0],
    "z % code >= 0": [1, 0, 0, 0],
    "-a <> 0": [1, 1, 0, 0],
    "cast(big AS int) <> 0": [0, 1, 0, 0],
    "coalesce(a / z, 1) = 1": [1, 0, 0, 1],
    "(a + 1) * 2 = 12": [1, 0, 0, 0],
}


@pytest.fixture
def frame(spark, ansi):
    return spark.createDataFrame(ROWS, "code string, a int, z int, big long").coalesce(1)


def test_what_cannot_be_computed_is_no_member_in_every_mode(frame):
    predicates = [{"name": f"p{i}", "where": where} for i, where in enumerate(MEMBERS)]
    families = GroupSet.from_config({"predicates": predicates}).families
    table = with_categories(frame, families).toPandas()
    found = {where: table[category_name(i)].tolist() for i, where in enumerate(MEMBERS)}
    assert found == MEMBERS


def test_a_condition_is_rewritten_inside_other_operations():
    assert computed("NOT (((`a` + 1) * 2) > CAST(`b` AS INT))") == (
        "NOT ((TRY_MULTIPLY((TRY_ADD(`a`, 1)), 2)) > TRY_CAST(`b` AS INT))"
    )
    assert computed("(-(`a` / `b`)) > -1") == "(TRY_SUBTRACT(0, (TRY_DIVIDE(`a`, `b`)))) > -1"
    guarded = "IF(TRY_CAST(`b` AS DOUBLE) = 0, NULL, `a` DIV `b`)"
    assert computed("(`a` DIV `b`) = 2") == f"({guarded}) = 2"
    unchanged = "((`a` / 2) > (`b` % 3)) OR (`c` LIKE 'x%')"
    assert computed(unchanged) == unchanged


def test_a_score_of_text_that_is_no_number_is_counted_in_every_mode(spark, ansi):
    frame = spark.createDataFrame([("0.5",), ("n/a",)], "score string")
    with pytest.raises(ContractError, match="1 in score"):
        working_columns(frame, ScoredColumns("score", "label"), labelled=False)


@pytest.mark.parametrize("name", ["__score", "__Family_0", "__signature_12", "__given_3"])
def test_a_callers_column_is_never_replaced_by_a_working_column(spark, name):
    frame = spark.createDataFrame([(0.5, 1)], f"score double, `{name}` int")
    with pytest.raises(ContractError, match="kept for working columns"):
        working_columns(frame, ScoredColumns("score", "label"), labelled=False)
    other = frame.withColumnRenamed(name, "__index_level_0__")
    assert working_columns(other, ScoredColumns("score", "label"), labelled=False).count() == 1

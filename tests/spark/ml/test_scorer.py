"""The scorer without Spark against Spark: categories of every type, conditions, and whole models."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from scorer_models import model, people, write

from mcspark import MulticalibratorModel
from mcspark.core.cells.groups import Family
from mcspark.errors import ContractError
from mcspark.ml.cells.groups import GroupSet, with_categories
from mcspark.ml.cells.signatures import category_name
from mcspark.scorer import Scorer
from mcspark.scorer.categories import FamilyCodes
from mcspark.scorer.columns import column_of
from mcspark.scorer.conditions import Condition

NAN, INF = float("nan"), float("inf")
TABLE = pa.table(
    {
        "i8": pa.array([1, -128, 127, None, 0, 5], pa.int8()),
        "i32": pa.array([5, 2_147_483_647, -2_147_483_648, None, 0, 70], pa.int32()),
        "i64": pa.array([3_000_000_000, 7, None, -3_000_000_000, 2**53 + 1, 0], pa.int64()),
        "u32": pa.array([0, 1, 4_000_000_000, None, 7, 7], pa.uint32()),
        "f32": pa.array([0.7, 0.1, NAN, None, -0.0, 1e10], pa.float32()),
        "f64": pa.array([0.7, 1e-4, NAN, None, -0.0, INF], pa.float64()),
        "g64": pa.array([0.3, 0.6, 12345678.0, 1e22, -1.5, 2.0], pa.float64()),
        "text": pa.array(["070", "A1", "", None, "nan", "ä%"], pa.string()),
        "num": pa.array(["0.6", " 12 ", "6D", "-inf", "1e3", "x"], pa.string()),
        "flag": pa.array([True, False, None, True, False, None], pa.bool_()),
        "dec": pa.array([Decimal(t) if t else None for t in ("1.50", "2.00", "0.07", None, "-3.10", "9.99")],
                        pa.decimal128(10, 2)),
        "fine": pa.array([Decimal(t) for t in ("0.1234567890123456789", "0.0000000000000000001", "1E-7",
                                               "0.5", "0", "3")], pa.decimal128(25, 19)),
        "day": pa.array([datetime.date(2024, 2, 29), None, datetime.date(1999, 1, 1)] * 2, pa.date32()),
    }
)  # fmt: skip
WHOLE = ("i8", "i32", "i64", "u32")
CUTS = [
    *({"kind": "bins", "column": c, "bins": (-5.0, 0.0, 0.1, 0.7, 12.0, 1e9)}
      for c in ("i8", "i32", "i64", "f32", "f64", "dec", "text", "num")),
    *({"kind": "divide", "column": c, "divide_by": by}
      for c in ("i32", "i64", "u32", "f32", "f64", "g64", "dec", "num", "text") for by in (0.1, 3.0)),
]  # fmt: skip
CONDITIONS = [
    "i32 + 1 <> 0", "i32 - 1 <> 0", "i32 * 2 <> 0", "i8 * i8 > 0", "i8 + 100 > 100", "i64 * i64 > 0",
    "-i32 <> 0", "i32 / i8 > 1", "i32 % i8 >= 0", "i32 div i8 <> 0", "i64 % 7 = -1", "i64 div 7 < 0",
    "i32 / 0 = 1", "i32 > 4.5", "i32 <= 5.0", "i64 > 9007199254740992", "i64 = 9007199254740992.5",
    "i64 between 0 and 3e9", "f32 = 0.7", "f64 > 0.1", "f64 * 2 > 1", "f64 / f32 >= 1", "g64 % 0.5 > 0",
    "abs(i64) > 7", "floor(g64 * 10) = 3", "floor(f64) > 7", "ceil(f32) = 1", "isnan(f64)",
    "f64 is null", "f32 <=> f64",
    "not (f32 <=> null)", "text = '070'", "text <> 'A1'", "text > 'B'", "text < '1'",
    "text in ('A1', '', null)", "text not in ('A1', null)", "text like '%1'", "text like '_\\\\%'",
    "text like 'a!%%' escape '!'", "upper(num) = 'X'", "trim(num) = '12'", "length(text) = 2",
    "substring(text, 2, 1) = '7'", "left(text, 1) = 'A'", "right(text, 2) = '70'", "startswith(text, 'A')",
    "endswith(text, '%')", "contains(text, '7')", "text >= 65", "text in (70, 71)",
    "cast(text as int) > 1", "cast(i64 as int) <> 0", "cast(f64 as int) = 0",
    "cast(i32 as double) / 2 > 1", "cast(i32 as string) = '5'", "flag", "not flag", "flag is true",
    "flag is not false", "flag and i32 = 5", "flag or i32 = 5", "flag = true", "flag <=> null",
    "coalesce(flag, true)", "coalesce(i32 / i8, 1) = 1", "coalesce(text, 'none') = 'none'",
    "if(i32 > 4, f64, 0) > 0.5", "case when i32 > 4 then flag when i8 = 0 then true end", "true", "false",
    "null is null", "i32 in (5, 70, null)", "i32 in (5, 70.0)", "f64 in (0.7, 0)",
    "I32 = 5 and TEXT = '070'",
]  # fmt: skip
REFUSED = [
    "f64 % 0.5 > 0",
    "num >= 12",
    "dec > 1",
    "day > '2000-01-01'",
    "text > f64",
    "i32 * 1.5 > 2",
    "flag > i32",
]


@pytest.fixture(scope="module")
def frame(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("types") / "table.parquet")
    pq.write_table(TABLE, path)
    return spark.read.parquet(path).coalesce(1)


def column(name):
    return column_of(TABLE, name)


def test_categories_of_every_type_are_those_of_spark(frame):
    drawn = [*({"kind": "value", "column": name} for name in TABLE.column_names), *CUTS]
    families = [Family(**{**one, "columns": (one["column"],)}) for one in drawn]
    names = [F.col(category_name(i)).cast("string") for i in range(len(families))]
    table = with_categories(frame, tuple(families)).select(*names).collect()
    wrong, compared = {}, 0
    for i, family in enumerate(families):
        whole = family.kind != "value" or family.column in WHOLE
        found = [v if v is None or not whole else int(v) for v in (row[i] for row in table)]
        categories = tuple(sorted({v for v in found if v is not None}))
        codes = FamilyCodes(replace(family, categories=categories)).of(column).tolist()
        expected = [0 if v is None else categories.index(v) + 1 for v in found]
        if codes != expected:
            wrong[str(drawn[i])] = (codes, expected, categories)
        compared += len(categories)
    assert wrong == {}
    assert compared > 100


def test_conditions_hold_where_spark_says_so(frame):
    predicates = [{"name": f"p{i}", "where": where} for i, where in enumerate(CONDITIONS)]
    families = GroupSet.from_config({"predicates": predicates}).families
    table = with_categories(frame, families).toPandas()
    expected = {where: table[category_name(i)].tolist() for i, where in enumerate(CONDITIONS)}
    found = {}
    for where, family in zip(CONDITIONS, families, strict=True):
        held = Condition("p", family.where).holds(column)
        found[where] = np.broadcast_to(held, len(TABLE)).astype(int).tolist()
    assert found == expected


@pytest.mark.parametrize("where", REFUSED)
def test_what_only_spark_can_compare_is_refused(where):
    (family,) = GroupSet.from_config({"predicates": [{"name": "p", "where": where}]}).families
    with pytest.raises(ContractError, match="cannot be evaluated without Spark"):
        Condition("p", family.where).holds(column)


@pytest.mark.parametrize("links", [("identity",), ("logit", "identity")])
def test_a_saved_model_scores_as_in_spark(spark, tmp_path, links):
    folder, table = write(model(links), tmp_path), people(2000)
    table.loc[10:20, "job"] = None
    scored = (
        MulticalibratorModel.load(str(folder)).transform(spark.createDataFrame(table).coalesce(1)).toPandas()
    )
    assert (Scorer.load(folder).score(table) == scored["calibrated_score"].to_numpy()).all()

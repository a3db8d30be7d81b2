from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from mcspark.acs.tasks import TASKS, task_named
from mcspark.errors import ConfigurationError

SCHEMA = "name string, AGEP bigint, PINCP bigint, WKHP bigint, PWGTP bigint, ESR bigint, JWMNP bigint"
IN = ("in", 17, 101, 1, 1, 1, 30)


def labels(spark: SparkSession, task: str, *rows: tuple[object, ...]) -> dict[str, float]:
    frame = spark.createDataFrame(rows, SCHEMA).where(TASKS[task].filter)
    return {
        row["name"]: row["label"]
        for row in frame.selectExpr("name", f"{TASKS[task].label} AS label").collect()
    }


@pytest.mark.parametrize("task", ["income", "income_class"])
def test_the_adult_filter_keeps_its_edges_out(spark: SparkSession, task: str) -> None:
    out = (
        ("child", 16, 101, 1, 1, 1, 30),
        ("poor", 17, 100, 1, 1, 1, 30),
        ("idle", 17, 101, 0, 1, 1, 30),
        ("weightless", 17, 101, 1, 0, 1, 30),
        ("no income", 17, None, 1, 1, 1, 30),
        ("no hours", 17, 101, None, 1, 1, 30),
    )
    assert set(labels(spark, task, IN, *out)) == {"in"}


def test_income_is_scaled_and_cut_below_the_ceiling(spark: SparkSession) -> None:
    rows = [("top", 30, 99_999, 40, 1, 1, 1), ("beyond", 30, 100_000, 40, 1, 1, 1)]
    assert labels(spark, "income", IN, *rows) == {"in": 0.00101, "top": 0.99999}


def test_income_class_is_above_the_threshold(spark: SparkSession) -> None:
    rows = [("at", 30, 50_000, 40, 1, 1, 1), ("above", 30, 50_001, 40, 1, 1, 1)]
    assert labels(spark, "income_class", *rows) == {"at": 0.0, "above": 1.0}


def test_travel_is_scaled_and_clipped(spark: SparkSession) -> None:
    rows = [
        ("long", 30, None, None, 1, 1, 141),
        ("longer", 30, None, None, 1, 1, 195),
        ("child", 16, None, None, 1, 1, 30),
        ("at home", 30, None, None, 1, 1, None),
        ("out of work", 30, None, None, 1, 3, 30),
        ("weightless", 30, None, None, 0, 1, 30),
    ]
    assert labels(spark, "travel", IN, *rows) == {"in": 30 / 141, "long": 1.0, "longer": 1.0}


def test_an_unknown_task_names_the_known() -> None:
    with pytest.raises(ConfigurationError, match="'health': choose one of income, income_class, travel"):
        task_named("health")

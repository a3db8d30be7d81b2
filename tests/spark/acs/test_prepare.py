from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession
from sklearn.linear_model import LinearRegression

from mcspark.acs.prepare import Prepared, prepare
from mcspark.errors import ConfigurationError, ContractError

Writer = Callable[[pd.DataFrame, str], str]
KEY = ["SERIALNO", "SPORDER"]


def tables(done: Prepared) -> tuple[pd.DataFrame, pd.DataFrame]:
    scored, attributes = (pd.read_parquet(done.paths[name]) for name in ("scored", "attributes"))
    return scored.set_index(KEY).sort_index(), attributes.set_index(KEY).sort_index()


def test_wyoming_2018(spark: SparkSession, shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "data/acs2018_wy/psam_p56.csv"
    done = prepare(spark, [str(path)], task="income_class", output=str(tmp_path / "wy"), train=1_000)
    assert done.summary()["rows"] == {"in": 5740, "filtered": 3064, "train": 1000, "scored": 2064}
    assert done.predictor.features == (
        "AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELSHIPP", "WKHP", "SEX", "RAC1P",
    )  # fmt: skip
    scored, attributes = tables(done)
    assert list(scored.columns) == ["score", "label", "PWGTP"]
    assert scored.index.is_unique
    assert scored.index.equals(attributes.index)
    assert scored["score"].between(0, 1).all()

    raw = pd.read_csv(path, dtype={"SERIALNO": str, "PUMA": str, "ST": str}, low_memory=False)
    raw = raw.set_index(KEY).loc[scored.index]
    np.testing.assert_array_equal(scored["label"], (raw["PINCP"] > 50_000).astype(float))
    np.testing.assert_array_equal(attributes["OCCP"], raw["OCCP"])
    np.testing.assert_array_equal(attributes["PUMA"], raw["PUMA"])
    assert set(attributes["STATE"]) == {"56"}
    informed = scored["score"][scored["label"] == 1].mean() - scored["score"][scored["label"] == 0].mean()
    assert informed > 0.1


def test_scores_are_those_of_a_regression_on_the_rows_left_out(
    spark: SparkSession, persons: pd.DataFrame, parquet_file: Writer, tmp_path: Path
) -> None:
    path = parquet_file(persons, "p.parquet")
    done = prepare(spark, [path], task="income", output=str(tmp_path / "out"), train=400)
    scored, _ = tables(done)
    task = persons[persons["PINCP"] < 100_000].set_index(KEY).sort_index()
    assert done.rows.filtered == len(task)
    train = task.drop(scored.index)
    assert len(train) == 400
    features = ["AGEP", "COW", "SCHL", "MAR", "OCCP", "WKHP", "SEX", "RAC1P"]
    assert list(done.predictor.features) == features
    oracle = LinearRegression().fit(train[features], train["PINCP"] / 1e5)
    rest = task.loc[scored.index]
    np.testing.assert_allclose(scored["score"], np.clip(oracle.predict(rest[features]), 0, 1), atol=1e-9)
    np.testing.assert_allclose(scored["label"], rest["PINCP"] / 1e5)
    np.testing.assert_array_equal(scored["PWGTP"], rest["PWGTP"])


def test_order_files_and_partitions_do_not_matter(
    spark: SparkSession, persons: pd.DataFrame, parquet_file: Writer, tmp_path: Path
) -> None:
    whole = parquet_file(persons, "whole.parquet")
    shuffled = persons.sample(frac=1, random_state=1)
    parts = [parquet_file(shuffled[i::3], f"part{i}.parquet") for i in range(3)]
    one, _ = tables(
        prepare(spark, [whole], task="income_class", output=str(tmp_path / "one"), train=500)
    )  # fmt: skip
    two, _ = tables(
        prepare(spark, parts, task="income_class", output=str(tmp_path / "two"), train=500)
    )  # fmt: skip
    pd.testing.assert_frame_equal(one, two, rtol=0, atol=1e-9)
    other, _ = tables(
        prepare(spark, [whole], task="income_class", output=str(tmp_path / "three"), train=500, seed=43)
    )  # fmt: skip
    assert len(other.index.intersection(one.index)) < 0.8 * len(one)


def test_features_that_cannot_be_used_are_left_out(
    spark: SparkSession, persons: pd.DataFrame, parquet_file: Writer, tmp_path: Path
) -> None:
    persons = persons.assign(POVPIP=pd.array([None, *range(1, len(persons))], dtype="Int64"))
    path = parquet_file(persons, "p.parquet")
    done = prepare(spark, [path], task="travel", output=str(tmp_path / "out"))
    # Absent: ESP, MIG, RELSHIPP, JWTRNS, POWPUMA; identifiers: PUMA, STATE; constant: DIS; null: POVPIP.
    assert done.predictor.features == ("AGEP", "SCHL", "MAR", "SEX", "RAC1P", "CIT", "OCCP")
    assert done.rows.train == 750, "half of the rows, where more are asked for"


def test_a_refused_run_leaves_the_old_output_and_no_other_trace(
    spark: SparkSession, persons: pd.DataFrame, parquet_file: Writer, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    (out / "notes").mkdir(parents=True)
    first = prepare(spark, [parquet_file(persons, "p.parquet")], task="income", output=str(out), train=400)
    before = tables(first)[0]
    with pytest.raises(ContractError):
        prepare(
            spark,
            [parquet_file(persons.drop(columns="PINCP"), "bad.parquet")],
            task="income",
            output=str(out),
        )
    pd.testing.assert_frame_equal(tables(first)[0], before)
    again = prepare(spark, [parquet_file(persons[:900], "q.parquet")], task="travel", output=str(out))
    assert len(tables(again)[0]) == again.rows.scored == 450
    assert sorted(path.name for path in out.iterdir()) == ["attributes", "notes", "scored"]


def test_nothing_to_learn_is_refused(
    spark: SparkSession, persons: pd.DataFrame, parquet_file: Writer, tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    poor = parquet_file(persons.assign(PINCP=0), "poor.parquet")
    with pytest.raises(ContractError, match="0 rows pass the filter of task income_class"):
        prepare(spark, [poor], task="income_class", output=out)
    alike = parquet_file(persons.assign(PINCP=200), "alike.parquet")
    with pytest.raises(ContractError, match="all 1500 rows in task income_class have one label"):
        prepare(spark, [alike], task="income_class", output=out)


def test_too_few_training_rows_are_a_usage_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="train is 3"):
        prepare(spark, ["p.parquet"], task="income", output=str(tmp_path), train=3)

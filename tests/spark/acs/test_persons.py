from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from mcspark.acs.columns import FURTHER_ATTRIBUTES, GROUP_ATTRIBUTES
from mcspark.acs.persons import read_persons
from mcspark.errors import ConfigurationError, ContractError

Writer = Callable[[pd.DataFrame, str], str]
REQUIRED = (*GROUP_ATTRIBUTES, "PWGTP")


def test_the_census_csv_of_2018_is_read_under_canonical_names(spark: SparkSession, shared_data: Path) -> None:
    path = shared_data / "data/acs2018_wy/psam_p56.csv"
    read = read_persons(spark, [str(path)], REQUIRED, FURTHER_ATTRIBUTES)
    assert read.rows == 5740
    assert read.absent == {}
    types = dict(read.frame.dtypes)
    assert {types[name] for name in ("SERIALNO", "STATE", "PUMA")} == {"string"}
    assert {types[name] for name in types if name not in {"SERIALNO", "STATE", "PUMA"}} == {"bigint"}
    raw = pd.read_csv(path, dtype=str)
    ours = read.frame.toPandas().set_index(["SERIALNO", "SPORDER"]).sort_index()
    raw = raw.assign(SPORDER=raw["SPORDER"].astype(int)).set_index(["SERIALNO", "SPORDER"]).sort_index()
    assert (ours["PUMA"] == raw["PUMA"]).all()
    assert set(ours["PUMA"].str.len()) == {5}
    for name, spelled in (("OCCP", "OCCP"), ("RELSHIPP", "RELP"), ("JWTRNS", "JWTR"), ("POBP", "POBP")):
        pd.testing.assert_series_equal(
            ours[name].astype(float), raw[spelled].astype(float), check_names=False, obj=name
        )


def test_csv_and_parquet_in_one_call(spark: SparkSession, shared_data: Path) -> None:
    paths = [
        str(shared_data / "data/acs2018_wy/psam_p56.csv"),
        str(shared_data / "data/acs2024/p_56.parquet"),
        str(shared_data / "data/acs2024/p_50.parquet"),
    ]
    read = read_persons(spark, paths, REQUIRED, ("RELSHIPP", "JWTRNS", "COW"))
    assert read.absent == {
        "RELSHIPP": "2 of 3 files lack it",
        "JWTRNS": "the files mix the code lists of JWTR and JWTRNS",
    }
    counts = {row["STATE"]: row["count"] for row in read.frame.groupBy("STATE").count().collect()}
    vermont = pd.read_parquet(paths[2])
    assert counts == {"56": 5740 + len(pd.read_parquet(paths[1])), "50": len(vermont)}
    assert read.rows == sum(counts.values())


def test_a_missing_column_is_named_with_its_former_names(
    spark: SparkSession, persons: pd.DataFrame, parquet_file: Writer
) -> None:
    path = parquet_file(persons.drop(columns=["STATE", "SCHL"]), "p.parquet")
    with pytest.raises(ContractError, match=r"lacks 2 of 8 required columns: SCHL, STATE \(ST until 2022\)"):
        read_persons(spark, [path], REQUIRED)


def test_an_identifier_that_lost_its_leading_zeros_is_refused(
    spark: SparkSession, persons: pd.DataFrame, parquet_file: Writer
) -> None:
    path = parquet_file(persons.assign(PUMA=persons["PUMA"].astype(int)), "p.parquet")
    with pytest.raises(ContractError, match="column PUMA is bigint and must be string"):
        read_persons(spark, [path], REQUIRED)


def test_whole_doubles_pass_for_integers_and_their_nan_for_null(
    spark: SparkSession, persons: pd.DataFrame, parquet_file: Writer
) -> None:
    cow = persons["COW"].astype(float)
    cow[:3] = float("nan")
    frame = read_persons(spark, [parquet_file(persons.assign(COW=cow), "p.parquet")], REQUIRED, ["COW"]).frame
    assert dict(frame.dtypes)["COW"] == "bigint"
    assert frame.where("COW IS NULL").count() == 3


@pytest.mark.parametrize("broken", ["12.5", "many"])
def test_a_value_that_is_no_integer_is_refused_with_an_example(
    spark: SparkSession, persons: pd.DataFrame, tmp_path: Path, broken: str
) -> None:
    persons = persons.astype(str)
    persons.loc[7, "AGEP"] = broken
    persons.to_csv(tmp_path / "psam_p06.csv", index=False)
    with pytest.raises(ContractError, match=rf"1 of 1500 rows .* AGEP holds '{broken}' in .*psam_p06.csv"):
        read_persons(spark, [str(tmp_path / "psam_p06.csv")], REQUIRED)


def test_fractions_in_a_double_column_are_refused(
    spark: SparkSession, persons: pd.DataFrame, parquet_file: Writer
) -> None:
    path = parquet_file(persons.assign(AGEP=persons["AGEP"] + 0.5), "p.parquet")
    with pytest.raises(ContractError, match="1500 of 1500 rows"):
        read_persons(spark, [path], REQUIRED)


def test_the_same_persons_twice_are_refused(
    spark: SparkSession, persons: pd.DataFrame, parquet_file: Writer
) -> None:
    paths = [parquet_file(persons, "a.parquet"), parquet_file(persons[:2], "b.parquet")]
    with pytest.raises(ContractError, match=r"more than once, first for \(2024HU000000000, 1\), "):
        read_persons(spark, paths, REQUIRED)


def test_a_missing_key_is_refused(spark: SparkSession, persons: pd.DataFrame, parquet_file: Writer) -> None:
    persons.loc[:4, "SERIALNO"] = None
    with pytest.raises(ContractError, match="5 of 1500 rows have no SERIALNO or no SPORDER"):
        read_persons(spark, [parquet_file(persons, "p.parquet")], REQUIRED)


def test_a_file_that_is_no_parquet_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    path.write_text("not at all")
    with pytest.raises(ContractError, match="cannot be read as parquet"):
        read_persons(spark, [str(path)], REQUIRED)


def test_a_file_missing_in_a_remote_store_is_a_usage_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        read_persons(spark, [f"file://{tmp_path}/gone.parquet"], REQUIRED)

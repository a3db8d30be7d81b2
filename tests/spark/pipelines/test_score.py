"""Scoring a new table with a saved model."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from mcspark import MulticalibratorModel
from mcspark.data.rows.contract import REASONS
from mcspark.errors import ContractError
from mcspark.pipelines.score import score

from .conftest import (
    ATTRIBUTES,
    KEY,
    UNLABELLED,
    configuration,
    content,
    population,
    read,
    start,
    write_tables,
)


def new_people(rows=700):
    """Others than the model was fitted on, with a race and missing values it has never seen."""
    people = population(rows, seed=99).iloc[UNLABELLED:].drop(columns="label")
    people["RAC1P"] = people["RAC1P"].astype("Int64")
    people.loc[people.index[:5], "RAC1P"] = 77
    people.loc[people.index[5:9], "RAC1P"] = pd.NA
    return people.assign(label=np.nan)


def run(spark, calibrated, tables, out, **sections):
    model = {"path": calibrated.summary["paths"]["model"]}
    return score(start(spark, "score", configuration(tables, out, model=model, **sections)))


def test_a_new_table_without_labels(spark, calibrated, tmp_path):
    people = new_people()
    write_tables(tmp_path, people)
    scored = tmp_path / "scored" / "part-0.parquet"
    pd.read_parquet(scored).drop(columns="label").to_parquet(scored, index=False)
    attributes = tmp_path / "attributes" / "part-0.parquet"
    pd.read_parquet(attributes)[["AGEP", "SPORDER", "SEX", "RAC1P", "SERIALNO"]].to_parquet(
        attributes, index=False
    )
    before = content(calibrated.out / "model")
    summary = run(spark, calibrated, tmp_path, tmp_path / "out")
    output = read(summary["paths"]["output"])
    assert list(output) == [*KEY, "score", "PWGTP", "calibrated_score", "split"]
    assert output["split"].isna().all()
    assert len(output) == len(people) == summary["rows"]["scored"]
    assert summary["unseen_categories"] == {"RAC1P": 5}
    model = MulticalibratorModel.load(calibrated.summary["paths"]["model"])
    frame = spark.read.parquet(str(scored)).join(spark.read.parquet(str(attributes)), KEY)
    expected = model.transform(frame).toPandas().sort_values(KEY, ignore_index=True)
    assert np.array_equal(output["calibrated_score"], expected["calibrated_score"])
    assert not np.array_equal(output["calibrated_score"], output["score"])
    assert content(calibrated.out / "model") == before
    json.dumps(summary, allow_nan=False)


def test_the_table_it_was_fitted_on_gets_the_same_scores(spark, calibrated, tmp_path):
    summary = run(spark, calibrated, calibrated.tables, tmp_path / "out")
    pd.testing.assert_frame_equal(read(summary["paths"]["output"]), calibrated.output, check_exact=True)


def test_a_missing_attribute_is_refused(spark, calibrated, tmp_path):
    write_tables(tmp_path, new_people())
    file = tmp_path / "attributes" / "part-0.parquet"
    pd.read_parquet(file).rename(columns={"RAC1P": "RACE1P"}).to_parquet(file, index=False)
    with pytest.raises(ContractError, match="RAC1P: missing, did you mean RACE1P"):
        run(spark, calibrated, tmp_path, tmp_path / "out")
    assert content(tmp_path / "out") == {}


def test_an_attribute_of_another_type_is_refused(spark, calibrated, tmp_path):
    write_tables(tmp_path, new_people().assign(SEX=lambda f: f["SEX"].astype(str)))
    with pytest.raises(ContractError, match=r"SEX.*string.*whole numbers when the groups were chosen"):
        run(spark, calibrated, tmp_path, tmp_path / "out")


@pytest.mark.parametrize("present", [False, True])
def test_a_split_column_of_the_calibration_is_no_need_of_scoring(spark, calibrated, tmp_path, present):
    people = population(500)
    write_tables(tmp_path, people)
    if present:
        file = tmp_path / "scored" / "part-0.parquet"
        pd.read_parquet(file).assign(part="test").to_parquet(file, index=False)
    summary = run(spark, calibrated, tmp_path, tmp_path / "out", split={"column": "part"})
    labelled = read(summary["paths"]["output"]).query("label.notna()")
    assert set(labelled["split"]) == ({"test"} if present else {"fit", "early_stopping", "test"})


def test_every_reason_at_once(spark, calibrated, tmp_path):
    """Rows in = scored + rejected, and each rejected row keeps its key and all its reasons."""
    people = population(450).iloc[UNLABELLED:]
    good = pd.DataFrame({
        "SERIALNO": people["SERIALNO"], "SPORDER": people["SPORDER"].astype(str), "when": "2026-01-02",
        "score": people["score"].map(repr), "label": "0.5", "w": "1",
    })  # fmt: skip
    bad = [
        ("score", "", "score_null"),
        ("score", "high", "score_not_numeric"),
        ("score", "NaN", "score_nan"),
        ("score", "Infinity", "score_infinite"),
        ("score", "1.01", "score_out_of_range"),
        ("w", "", "weight_null"),
        ("w", "many", "weight_not_numeric"),
        ("w", "NaN", "weight_nan"),
        ("w", "Infinity", "weight_infinite"),
        ("SERIALNO", "", "null_key"),
        ("SERIALNO", "2024HU999999999", "unmatched"),
        ("when", "2026-01-01", "superseded"),
    ]
    # Scoring judges no label.
    assert {reason for *_, reason in bad} == {r for r in REASONS if not r.startswith("label_")}
    for i, (column, value, _) in enumerate(bad):
        good.iloc[i, good.columns.get_loc(column)] = value
    newer = good.iloc[[len(bad) - 1]].assign(when="2026-01-03")  # the last bad row is the older of two
    two = good.iloc[[0]].assign(SERIALNO="2024HU888888888", w="NaN", label="2")
    (tmp_path / "scored").mkdir()
    pd.concat([good, newer, two]).to_csv(tmp_path / "scored" / "part.csv", index=False)
    (tmp_path / "attributes").mkdir()
    attributes = people[[*KEY, *ATTRIBUTES]].assign(SPORDER=people["SPORDER"].astype(str))
    attributes.to_parquet(tmp_path / "attributes" / "part.parquet", index=False)
    summary = run(
        spark, calibrated, tmp_path, tmp_path / "out",
        scored={
            "format": "csv", "csv": {"null_values": []}, "weight": "w", "dedupe": {"latest_by": "when"},
        },
        attributes=[{"path": str(tmp_path / "attributes"), "key": KEY, "on_unmatched": "reject"}],
    )  # fmt: skip
    output, rejected = read(summary["paths"]["output"]), read(summary["paths"]["rejected"])
    rows = summary["rows"]
    assert rows["in"] == len(good) + 2 == len(output) + len(rejected)
    assert (rows["scored"], rows["rejected"]) == (len(output), len(rejected))
    assert len(rejected) == len(bad) + 1
    expected = {reason: 1 for *_, reason in bad}
    expected |= {"score_null": 2, "weight_nan": 2}
    assert summary["rejected_by_reason"] == expected
    found = rejected.set_index("SERIALNO")["reasons"]
    assert sorted(found["2024HU888888888"]) == ["score_null", "weight_nan"]
    assert list(found["2024HU999999999"]) == ["unmatched"]
    assert not output.duplicated(KEY).any()
    assert output["calibrated_score"].between(0, 1).all()


def test_no_model_no_scores(spark, calibrated, tmp_path):
    config = configuration(calibrated.tables, tmp_path / "out", model={"path": str(tmp_path / "none")})
    with pytest.raises(ContractError, match="no readable model"):
        score(start(spark, "score", config))
    assert content(tmp_path / "out") == {}

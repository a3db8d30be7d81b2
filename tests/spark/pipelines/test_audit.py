"""Measuring a scored table, down to six rows that can be checked by hand."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from mcspark.errors import ContractError
from mcspark.pipelines.audit import audit

from .conftest import configuration, content, start

SIX = pd.DataFrame({
    "id": [f"0{i}" for i in range(6)],
    "score": [0.1, 0.1, 0.3, 0.3, 0.8, 0.8],
    "label": [0.0, 1.0, 0.0, 1.0, 1.0, 1.0],
    "part": "test",
})  # fmt: skip
MEMBER = pd.DataFrame({"id": SIX["id"], "a": [1, 1, 0, 0, 1, 1], "b": [0, 1, 1, 1, 0, 1]})


@pytest.fixture
def six(tmp_path):
    for name, table in (("scored", SIX), ("attributes", MEMBER)):
        (tmp_path / name).mkdir()
        table.to_parquet(tmp_path / name / "part.parquet", index=False)
    return tmp_path


def config_of(tables, **sections):
    return configuration(
        tables, tables / "out",
        scored={"key": ["id"], "weight": None},
        attributes=[{"path": str(tables / "attributes"), "key": ["id"], **sections.pop("attribute", {})}],
        groups={
            "min_share": 0, "columns": [],
            "predicates": [{"name": "A", "where": "a = 1"}, {"name": "B", "where": "b = 1"}],
        },
        split={"column": "part"}, evaluation={"levels": [2, 10], "draws": 20},
        output={"path": str(tables / "out" / "audited"), "partition": None}, **sections,
    )  # fmt: skip


def test_six_rows_by_hand(spark, six):
    summary = audit(start(spark, "audit", config_of(six)))
    found = summary["metrics"]["before"]
    # m = 2, values 0.25 and 0.75: A |2/4 - 1| + |6/4 - 2| = 1, B |3/4 - 2| + |3/4 - 1| = 1.5; of six rows.
    assert found["by_level"]["2"]["mc_error"] == pytest.approx(1.5 / 6, abs=1e-12)
    assert found["by_level"]["2"]["ma_error"] == pytest.approx(1.5 / 6, abs=1e-12)
    # m = 10, values 0.15, 0.35, 0.85: A |0.3 - 1| + |1.7 - 2| = 1, B 0.85 + |0.7 - 1| + 0.15 = 1.3.
    assert found["by_level"]["10"]["mc_error"] == pytest.approx(1.3 / 6, abs=1e-12)
    assert found["by_level"]["10"]["level_sets"] == 3
    assert {level["worst_group"] for level in found["by_level"].values()} == {"B"}
    assert found["loss"] == pytest.approx(1.48 / 6, abs=1e-12)
    assert summary["rows"] == {"in": 6, "scored": 6, "rejected": 0, "labelled": 6, "test": 6}
    assert (summary["groups"], summary["signatures"]) == (2, 3)
    assert not {"stages", "saturation"} & set(summary)
    assert "after" not in summary["metrics"]
    json.dumps(summary, allow_nan=False)


def test_more_cells_than_the_driver_takes_are_measured_in_the_cluster(spark, six, capsys):
    summary = audit(start(spark, "audit", config_of(six, calibrator={"driver_cells": 2})))
    found = summary["metrics"]["before"]
    assert found["by_level"]["2"]["mc_error"] == pytest.approx(1.5 / 6, abs=1e-12)
    assert found["by_level"]["10"]["mc_error"] == pytest.approx(1.3 / 6, abs=1e-12)
    assert found["loss"] == pytest.approx(1.48 / 6, abs=1e-12)
    # Of four positive and two negative rows: 0.3 against 0.1 wins, and 0.8 against both; ties are a half.
    assert found["auc"] == pytest.approx((0.5 + 0 + 1 + 0.5 + 2 * 2) / 8, abs=1e-12)
    assert 0 < found["by_level"]["10"]["noise_floor"] < 0.6
    low, high = found["by_level"]["10"]["interval"]
    assert 0 <= low <= high
    assert summary["signatures"] == 3
    said = capsys.readouterr()
    assert "measured in the cluster" in said.out + said.err
    assert "calibrator.driver_cells" in said.out + said.err


def test_groups_of_the_metrics_table(spark, six):
    summary = audit(start(spark, "audit", config_of(six)))
    table = pd.read_parquet(summary["paths"]["metrics"], partitioning=None)
    by_group = table[(table["metric"] == "group_mc_error") & (table["levels"] == 10)].set_index("group")[
        "value"
    ]
    assert by_group["A"] == pytest.approx(1 / 6, abs=1e-12)
    assert by_group["B"] == pytest.approx(1.3 / 6, abs=1e-12)


def test_only_metrics_and_manifest_are_written(spark, six):
    before = content(six)
    summary = audit(start(spark, "audit", config_of(six)))
    new = {name.split("/")[1] for name in content(six).keys() - before.keys()}
    assert new == {"audited_metrics", "_audited_manifests"}
    assert {name: content(six)[name] for name in before} == before
    assert set(summary["paths"]) == {"metrics", "manifest"}


def test_an_audit_measures_what_calibrate_measured_before(spark, calibrated, tmp_path):
    config = configuration(calibrated.tables, tmp_path / "out")
    summary = audit(start(spark, "audit", config))
    before, found = calibrated.summary["metrics"]["before"], summary["metrics"]["before"]
    for m in ("10", "20"):
        assert found["by_level"][m]["mc_error"] == pytest.approx(before["by_level"][m]["mc_error"], abs=1e-12)
        assert found["by_level"][m]["worst_group"] == before["by_level"][m]["worst_group"]
    assert found["loss"] == pytest.approx(before["loss"], abs=1e-12)
    for name in ("rows", "groups", "signatures"):
        assert summary[name] == calibrated.summary[name]


def test_rows_without_attributes_may_be_refused(spark, six):
    MEMBER.iloc[1:].to_parquet(six / "attributes" / "part.parquet", index=False)
    with pytest.raises(ContractError, match=r"no attributes for 1 scored row\(s\)"):
        audit(start(spark, "audit", config_of(six, attribute={"on_unmatched": "fail"})))


def test_a_wrong_split_is_refused(spark, six):
    SIX.assign(part=["test"] * 5 + ["tset"]).to_parquet(six / "scored" / "part.parquet", index=False)
    with pytest.raises(ContractError, match="neither 'fit' nor 'test' but 'tset'"):
        audit(start(spark, "audit", config_of(six)))


def test_nothing_held_out_is_null_and_not_nan(spark, six):
    SIX.assign(part="fit").to_parquet(six / "scored" / "part.parquet", index=False)
    summary = audit(start(spark, "audit", config_of(six)))
    assert summary["rows"]["test"] == 0
    assert summary["metrics"]["before"]["by_level"]["10"]["mc_error"] is None
    json.dumps(summary, allow_nan=False)

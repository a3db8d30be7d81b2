"""The contract of the output in every format: published, run again, refused, and read back as an input."""

from __future__ import annotations

import pandas as pd
import pytest

from mcspark.config import ScoredTable
from mcspark.data.formats.lake import by_path
from mcspark.data.leases.manifest import read_manifest
from mcspark.data.tables import read_table
from mcspark.errors import ContractError, GateError
from mcspark.pipelines.audit import audit
from mcspark.pipelines.calibrate import calibrate
from mcspark.pipelines.score import score

from .conftest import DAY, KEY, configuration, population, start, write_tables

FORMATS = ["delta", "iceberg"]
EVE = {"ds": "2026-11-25"}


def config(calibrated, out, table_format, **sections):
    output = {"path": str(out / "calibrated"), "format": table_format, "partition": DAY}
    output |= sections.pop("output", {})
    model = {"path": calibrated.summary["paths"]["model"]}
    return configuration(calibrated.tables, out, output=output, model=model, **sections)


def lake(spark, path, table_format):
    """A day of a table, as a reader without this package gets it."""
    return spark.read.format(table_format).load(str(path))


def of_day(spark, path, table_format, day=DAY):
    frame = lake(spark, path, table_format).where(f"ds = '{day['ds']}'").drop("ds")
    table = frame.toPandas()
    return table.sort_values([k for k in KEY if k in table], ignore_index=True)


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_day_is_scored_twice_beside_another(spark, calibrated, tmp_path, table_format):
    eve = score(start(spark, "score", config(calibrated, tmp_path, table_format, output={"partition": EVE})))
    first = score(start(spark, "score", config(calibrated, tmp_path, table_format)))
    output = of_day(spark, first["paths"]["output"], table_format)
    pd.testing.assert_frame_equal(output, calibrated.output, check_exact=True)
    rejected = lake(spark, first["paths"]["rejected"], table_format).where(f"ds = '{DAY['ds']}'")
    assert rejected.count() == first["rows"]["rejected"] == 4
    files = {f for f in lake(spark, tmp_path / "calibrated", table_format).inputFiles() if EVE["ds"] in f}
    again = score(start(spark, "score", config(calibrated, tmp_path, table_format)))
    assert of_day(spark, again["paths"]["output"], table_format).equals(output)
    assert lake(spark, tmp_path / "calibrated", table_format).count() == 2 * len(output)
    assert files <= set(lake(spark, tmp_path / "calibrated", table_format).inputFiles())
    manifests = {run["paths"]["manifest"] for run in (eve, first, again)}
    assert len(manifests) == 3
    assert read_manifest(spark, again["paths"]["manifest"])["rows"] == again["rows"]
    assert {p.name for p in tmp_path.iterdir()} == {
        "calibrated", "calibrated_rejected", "_calibrated_runs",
    }  # fmt: skip


@pytest.mark.parametrize("table_format", FORMATS)
def test_what_was_written_is_read_as_input(spark, calibrated, tmp_path, table_format):
    """The output of one run, in its format and limited to its day, is audited as a scored table."""
    done = score(start(spark, "score", config(calibrated, tmp_path, table_format)))
    table = ScoredTable(path=done["paths"]["output"], format=table_format, partition=DAY, key=KEY)
    assert read_table(spark, table).count() == done["rows"]["scored"]
    with pytest.raises(ContractError, match="no column 'st'"):
        read_table(spark, table.model_copy(update={"partition": {"st": "01"}}))
    measured = read_table(spark, table).where("split in ('fit', 'test')")
    place = str(tmp_path / "again")
    by_path(spark, table_format, place, "x").replace(
        measured.withColumnRenamed("calibrated_score", "f1"), None
    )
    again = config(
        calibrated, tmp_path / "audit", table_format, split={"column": "split"},
        scored={"path": place, "format": table_format, "score": "f1"},
    )  # fmt: skip
    found = audit(start(spark, "audit", again))
    after = calibrated.summary["metrics"]["after"]["by_level"]["20"]["mc_error"]
    assert found["metrics"]["before"]["by_level"]["20"]["mc_error"] == pytest.approx(after, abs=1e-12)
    rows = lake(spark, found["paths"]["metrics"], table_format).where(f"run_id = '{found['run_id']}'")
    value = rows.where("metric = 'mc_error' and levels = 20").head()["value"]
    assert value == found["metrics"]["before"]["by_level"]["20"]["mc_error"]


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_gate_that_fails_leaves_the_old_version(spark, calibrated, tmp_path, table_format):
    people = population(1500)
    write_tables(tmp_path / "tables", people)
    score(start(spark, "score", config(calibrated, tmp_path, table_format)))
    before = of_day(spark, tmp_path / "calibrated", table_format)
    output = {"path": str(tmp_path / "calibrated"), "format": table_format, "partition": DAY}
    strict = configuration(
        tmp_path / "tables", tmp_path, output=output, gate={"max_mc_error": 1e-6},
        calibrator={"max_trees": 3, "early_stopping_rounds": 2, "score_bins": 0},
    )  # fmt: skip
    with pytest.raises(GateError, match=r"above gate\.max_mc_error"):
        calibrate(start(spark, "calibrate", strict))
    assert of_day(spark, tmp_path / "calibrated", table_format).equals(before)
    assert not (tmp_path / "model").exists()


def test_a_table_of_the_catalog_in_and_out(spark, calibrated, tmp_path, request):
    spark.sql(f"CREATE DATABASE lab LOCATION '{tmp_path}/lab'")
    request.addfinalizer(lambda: spark.sql("DROP DATABASE lab CASCADE"))
    for name in ("scored", "attributes"):
        spark.sql(f"CREATE TABLE lab.{name} USING parquet LOCATION '{calibrated.tables / name}'")
    output = {"path": None, "table": "lab.calibrated", "partition": DAY}
    plain = configuration(
        calibrated.tables, tmp_path / "run", output=output,
        scored={"path": None, "table": "lab.scored"}, attributes=[{"table": "lab.attributes", "key": KEY}],
        model={"path": calibrated.summary["paths"]["model"]},
    )  # fmt: skip
    done = score(start(spark, "score", plain))
    assert done["paths"]["output"] == "lab.calibrated"
    table = spark.table("lab.calibrated").drop("ds").toPandas().sort_values(KEY, ignore_index=True)
    pd.testing.assert_frame_equal(table, calibrated.output, check_exact=True)
    assert spark.table("lab.calibrated_rejected").count() == 4

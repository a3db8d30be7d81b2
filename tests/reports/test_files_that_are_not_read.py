"""Folders in which a reader passes over some of the files, or reads what the table has deleted."""

from __future__ import annotations

import json
import shutil

import pandas as pd
import pytest
import yaml

from mcspark.cli.init import write_configuration
from mcspark.data.formats.lake import by_path
from mcspark.data.guess import read_sample
from mcspark.errors import ContractError


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["part-0.parquet", "more/part-1.parquet"], r"1 file\(s\), such as more/part-1.*subfolders"),
        (["a/part-0.parquet", "b/part-1.parquet"], r"2 file\(s\), such as a/part-0.*subfolders"),
        (["part-0.parquet", "_part-1.parquet"], r"1 file\(s\), such as _part-1.*begin with '_' or '\.'"),
        (["part-0.parquet", ".part-1.parquet"], r"such as \.part-1.*begin with '_' or '\.'"),
        (["part-0.parquet", "_old/part-1.parquet"], r"such as _old/part-1.*begin with '_' or '\.'"),
        (["ds=1/part-0.parquet", "part-1.parquet"], r"such as part-1.*outside of the partition folders ds="),
        (["ds=1/part-0.parquet", "more/part-1.parquet"], r"such as more/part-1.*outside of the partition"),
        (["ds=1/part-0.parquet", "dt=1/part-1.parquet"], r"such as dt=1/part-1.*other than ds="),
        (["ds=1/part-0.parquet", "ds=1/h=2/part-1.parquet"], r"such as ds=1/part-0.*other than ds=…/h="),
        (["g=a%20b/part-0.parquet", "g=%C3%BC/part-1.parquet"], r"1 file\(s\), such as g=%C3%BC.*rename the"),
    ],
)  # fmt: skip
def test_files_that_would_be_passed_over_refuse_the_table(world, people, names, told):
    table = world.root / "scored"
    shutil.rmtree(table)
    for i, name in enumerate(names):
        (table / name).parent.mkdir(parents=True, exist_ok=True)
        people.iloc[i::2].to_parquet(table / name, index=False)
    world.refused(told)
    with pytest.raises(ContractError, match=told):  # what a first configuration is guessed from
        read_sample(str(table))


def test_the_leavings_of_writers_are_no_part_of_the_table(world, people):
    table = world.root / "scored"
    for name in (
        "_SUCCESS",
        "_committed_1",
        ".a.parquet.crc",
        "._part-0.parquet",
        ".DS_Store",
        "_notes.md",
    ):
        (table / name).write_text("x")
    (table / "_temporary" / "0").mkdir(parents=True)
    (table / "_temporary" / "0" / "part-9.parquet").write_text("x")
    done = world.ran("score")
    assert done.summary["rows"]["in"] == len(people)
    assert "left_out=1" in done.log
    assert "_notes.md" in done.log


def test_a_file_of_another_kind_among_the_data_is_named(world, people):
    (world.root / "scored" / "README.md").write_text("the scores of November")
    world.refused(r"README\.md is not a readable Parquet file")
    folder = world.root / "text"
    folder.mkdir()
    people.to_csv(folder / "a.csv", index=False)
    people.to_parquet(folder / "b.parquet")
    world.refused(r"b\.parquet, are no CSV by their names", scored={"path": str(folder), "format": "csv"})


@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_parquet_in_a_folder_with_versions_is_refused_with_the_right_format(spark, tmp_path, people, lake):
    place = tmp_path / "versions"
    table = by_path(spark, lake, str(place), "run")
    day = people.assign(ds="2026-11-26")
    for rows in (day[10:], day[:10]):
        table.replace(spark.createDataFrame(rows), {"ds": "2026-11-26"})
    from mcspark.config import ScoredTable
    from mcspark.data.tables import read_table

    inside = next(path.parent for path in place.rglob("ds=*/*.parquet"))
    for path in (place, inside):
        with pytest.raises(ContractError, match=f"a table of format {lake}.*write format: {lake}"):
            read_table(spark, ScoredTable(path=str(path), key=["house", "person"]))
    source = ScoredTable(path=str(place), format=lake, key=["house", "person"])
    assert read_table(spark, source).count() == 10
    # A first configuration proposes it.
    attributes = tmp_path / "attributes.parquet"
    people[["house", "person", "sex"]].to_parquet(attributes)
    write_configuration(str(place), [str(attributes)], str(tmp_path / "first.yaml"))
    assert yaml.safe_load((tmp_path / "first.yaml").read_text())["scored"]["format"] == lake


def test_a_folder_of_hudi_is_refused(world):
    (world.root / "scored" / ".hoodie").mkdir()
    world.refused(r"a table of format hudi.*export")


def test_a_folder_called_metadata_alone_is_no_lake(world, people):
    folder = world.root / "scored" / "metadata"
    folder.mkdir()
    (folder / "notes.json").write_text(json.dumps({}))
    world.refused(r"such as metadata/notes\.json.*subfolders")
    shutil.rmtree(folder)
    assert isinstance(pd.read_parquet(world.root / "scored"), pd.DataFrame)
    assert world.ran().summary["rows"]["in"] == len(people)

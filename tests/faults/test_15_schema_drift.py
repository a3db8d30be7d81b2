"""A column that is gone, renamed, of another type in one file, or new."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from mcspark.pipelines.reading import inputs


@pytest.mark.parametrize(("old", "new"), [("RELP", "RELSHIPP"), ("ST", "STATE")])
def test_a_census_column_that_was_renamed_is_named(world, old, new):
    world.change("attributes", lambda t: t.rename(columns={"sex": new}))
    groups = {"columns": [{"column": old}, {"column": "age", "bins": [0, 30, 120]}], "predicates": []}
    world.refused(f"{old}: missing, did you mean {new}", job="calibrate", groups=groups)


def test_every_missing_column_is_told_at_once(world):
    world.change("scored", lambda t: t.rename(columns={"score": "scores", "w": "weight"}))
    done = world.refused(r"2 problem\(s\) with the columns")
    assert "score: missing, did you mean scores" in done.error
    assert "w: missing" in done.error


def test_a_type_that_changes_between_files_is_a_diff(world, people):
    world.write("attributes", people[["house", "person", "sex", "age", "job"]], files=3)
    file = world.root / "attributes" / "part-1.parquet"
    import pandas as pd

    pd.read_parquet(file).assign(age=lambda t: t["age"].astype(str)).drop(columns="job").to_parquet(file)
    done = world.refused(r"attributes: its files disagree about 2 column\(s\)")
    assert "~ age bigint -> string" in done.error
    assert "- job string" in done.error
    assert "part-1.parquet" in done.error


def test_no_job_reads_a_row_before_it_is_refused(spark, world):
    world.change("scored", lambda t: t.rename(columns={"score": "scores"}))
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.nextJobId()
    world.refused("score: missing")
    # The look at the executors, and one to find the schema of each table.
    assert scheduler.nextJobId() - before <= 3


def test_further_columns_are_logged_and_change_nothing(world, people):
    world.change("scored", lambda t: t.assign(note="x"))
    world.change("attributes", lambda t: t.assign(shoe=43))
    done = world.ran()
    assert "columns not used" in done.log
    assert "note" in done.log
    assert "shoe" in done.log
    assert done.summary["rows"]["scored"] == len(people)


def typed_anew(file: Path) -> None:
    import pandas as pd

    pd.read_parquet(file).assign(score="0.5").to_parquet(file)


def torn(file: Path) -> None:
    file.write_bytes(b"x" * file.stat().st_size)


@pytest.mark.parametrize(
    ("how", "words", "code"),
    [
        (Path.unlink, "part-0.parquet.*run again once nobody writes there", 75),
        (
            lambda file: file.write_bytes(b"x" * 5000),
            "part-0.parquet.*is not a Parquet file.*write it anew",
            3,
        ),
        (typed_anew, "part-0.*the file is damaged, or was written anew while it was read", 3),
    ],
)
def test_a_file_that_another_job_replaces_while_it_is_read_is_named(world, how, words, code):
    inspect = inputs.inspect

    def replaced(*arguments, **options):
        how(world.root / "scored" / "part-0.parquet")
        return inspect(*arguments, **options)

    with mock.patch.object(inputs, "inspect", replaced):
        world.refused(words, code)

"""Keys whose types differ between the tables: '01' is not 1."""

from __future__ import annotations

import pytest

DIFFERENT = {
    "text and a whole number": (
        lambda t: t.assign(person=t["person"].map("{:02d}".format)),
        "string",
        "bigint",
    ),
    "a whole number and a double": (lambda t: t.assign(person=t["person"] + 0.0), "double", None),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_nothing_is_cast(world, what):
    change, kind, other = DIFFERENT[what]
    world.change("attributes", change)
    message = (
        rf"key person {kind}, but {other} in the scored table: nothing is cast"
        if other
        else rf"person {kind}"
    )
    done = world.refused(message)
    assert "attributes" in done.error


def test_no_job_reads_a_row_for_it(spark, world):
    world.change("attributes", DIFFERENT["text and a whole number"][0])
    before = spark.sparkContext._jsc.sc().dagScheduler().nextJobId()
    world.refused("nothing is cast")
    # The look at the executors, and one to find the schema of each table.
    assert spark.sparkContext._jsc.sc().dagScheduler().nextJobId() - before <= 3


def test_widths_of_whole_numbers_are_one_type(world, people):
    world.change("attributes", lambda t: t.assign(person=t["person"].astype("int16")))
    assert world.ran().summary["rows"]["scored"] == len(people)

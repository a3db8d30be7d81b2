"""Categories and columns that are not those of the calibration."""

from __future__ import annotations

import numpy as np

from mcspark import MulticalibratorModel


def test_an_unseen_category_is_in_no_group_and_counted(world, people):
    world.change("attributes", lambda t: t.assign(job=np.where(t.index < 9, "astronaut", t["job"])))
    done = world.ran()
    assert done.summary["unseen_categories"] == {"job": 9}
    scores = list(world.output(done)["calibrated_score"])
    model = MulticalibratorModel.load(str(world.root / "model"))
    # The same rows with the job unknown: a member of no group of jobs.
    world.change("attributes", lambda t: t.assign(job=np.where(t.index < 9, None, t["job"])))
    nobody = world.ran()
    assert nobody.summary["unseen_categories"] == {}
    assert model.fitted.names[-1] == "old women"
    assert scores == list(world.output(nobody)["calibrated_score"])


def test_the_order_of_attributes_is_restored_by_name(world):
    plain = world.output(world.ran())
    world.change("attributes", lambda t: t[["age", "person", "job", "house", "sex"]].iloc[::-1])
    world.change("scored", lambda t: t[["w", "label", "person", "score", "house"]])
    assert world.output(world.ran()).equals(plain)


def test_a_missing_attribute_is_refused(world):
    world.change("attributes", lambda t: t.rename(columns={"job": "work"}))
    world.refused("job: missing")


def test_an_attribute_of_another_type_is_refused(world):
    world.change("attributes", lambda t: t.assign(sex=t["sex"].astype(str)))
    world.refused(r"'sex' is string, but was whole numbers when the groups were chosen")

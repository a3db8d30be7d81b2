"""Labels in a table of their own: later than the scores, set right, or with keys of another spelling."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from tests.faults.conftest import KEY

LABELS = ["person", "house", "truth"]


@pytest.fixture
def apart(world, people) -> dict[str, Any]:
    """The world with its labels in a table of their own, beside labels of nobody."""
    table = people.rename(columns={"label": "truth"})[LABELS]
    world.write("labels", pd.concat([table, table.iloc[:2].assign(house="99999")]))
    world.change("scored", lambda t: t.drop(columns="label"))
    return {"labels": {"path": str(world.root / "labels"), "key": ["person", "house"], "label": "truth"}}


def test_they_are_as_good_as_a_column(world, people, apart):
    done = world.ran("calibrate", **apart)
    kept, metrics, audited = world.output(done), done.summary["metrics"], world.ran("audit", **apart)
    assert done.summary["rows"]["labelled"] == len(people)
    assert audited.summary["rows"]["labelled"] == len(people)
    world.write("scored", people[[*KEY, "score", "label", "w"]])
    again = world.ran("calibrate")
    pd.testing.assert_frame_equal(world.output(again), kept)
    assert again.summary["metrics"] == metrics


def test_a_row_whose_label_has_not_come_is_scored_and_not_learned_from(world, apart):
    world.change("labels", lambda t: t.iloc[:-20].assign(truth=lambda f: f["truth"].where(f.index > 4)))
    done = world.ran("calibrate", **apart)
    output = world.output(done)
    assert done.summary["rows"]["scored"] == len(output) == 240
    # 240 and two of nobody, less the last twenty, and five that are null.
    assert done.summary["rows"]["labelled"] == output["label"].notna().sum() == 240 - 18 - 5
    assert (output["split"].isna() == output["label"].isna()).all()


def test_of_several_days_one_is_meant(world, people, apart):
    """Each day's labels have keys of their own, so all days together would be refused."""
    table = people.rename(columns={"label": "truth"})[LABELS]
    for day, of in (("2026-11-25", table.assign(truth=0.0)), ("2026-11-26", table)):
        world.write(f"daily/ds={day}", of)
    apart["labels"]["path"] = str(world.root / "daily")
    world.refused(r"daily: 240 key\(s\)", 3, "calibrate", **apart)
    apart["labels"]["partition"] = {"ds": "2026-11-26"}
    output = world.output(world.ran("calibrate", **apart))
    assert output["label"].sum() == people["label"].sum()


def test_two_labels_of_one_key_are_refused(world, apart):
    world.change("labels", lambda t: pd.concat([t, t.iloc[:1].assign(truth=0.0)]))
    world.refused(r"labels: 1 key\(s\) .* are on 2 rows, .*keep one label a key", 3, "calibrate", **apart)


def test_labels_of_other_keys_are_told_with_both_spellings(world, apart):
    world.change("labels", lambda t: t.assign(house=t["house"].str.lstrip("0")))
    world.refused(r"labels: none of its labels .* leading zeros", 3, "calibrate", **apart)


def test_keys_of_another_type_are_refused(world, apart):
    world.change("labels", lambda t: t.assign(person=t["person"].astype(str)))
    world.refused("~ key person string, but bigint in the scored table", 3, "calibrate", **apart)


@pytest.mark.parametrize("job", ["calibrate", "score"])
def test_a_label_in_both_tables_is_refused(world, apart, job):
    world.change("scored", lambda t: t.assign(LABEL=1.0))
    world.refused("scored: has the column LABEL, and the configuration a table", 3, job, **apart)


def test_a_label_out_of_range_is_rejected_like_one_in_the_scored_table(world, apart):
    world.change("labels", lambda t: t.assign(truth=t["truth"].where(t.index > 0, 7.0)))
    done = world.ran("calibrate", **apart)
    assert set(world.rejected(done)["reasons"].map(tuple)) == {("label_out_of_range",)}


def test_scoring_does_not_open_them(world, apart):
    apart["labels"]["path"] += "-that-are-not-there"
    assert "label" not in world.output(world.ran("score", **apart))


def test_csv_labels_are_read_like_other_csv(world, apart, people):
    (world.root / "labels.csv").write_text(
        people.rename(columns={"label": "truth"})[LABELS].astype({"person": str}).to_csv(index=False)
    )
    world.change("scored", lambda t: t.astype({"person": str}))
    world.change("attributes", lambda t: t.astype({"person": str}))
    apart["labels"] |= {"path": str(world.root / "labels.csv"), "format": "csv"}
    assert world.ran("calibrate", **apart).summary["rows"]["labelled"] == len(people)


def test_an_output_over_the_labels_is_refused(world, apart):
    place = apart["labels"]["path"]
    world.refused("labels", 2, "calibrate", **apart, output={"path": place, "partition": None})

"""Kept cells, and windows of days learned from them: late labels, torn files, missing days."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pytest

from mcspark.data.kept import KeptStore
from mcspark.ml.cells import driver_cells
from tests.faults.conftest import ATTRIBUTES, GROUPS, KEY, SCORED, World, content, people_table
from tests.tiny import tiny_tables

LAST = date(2026, 11, 26)
ROWS = 400


def day(before: int) -> str:
    return f"ds={LAST - timedelta(days=before)}"


@pytest.fixture(scope="module")
def daily(spark: Any, ready: Path, tmp_path_factory: Any) -> Iterator[World]:
    """Five days of different people, with the cells of the last four; each test leaves days as they were."""
    root = tmp_path_factory.mktemp("window") / "world"
    shutil.copytree(ready, root)
    world = World(spark, root)
    people = pd.concat([people_table(ROWS, seed=n + 1).assign(n=n) for n in range(5)], ignore_index=True)
    people["house"] = people["n"].astype(str) + "-" + people["house"]
    for n, of_day in people.groupby("n"):
        world.write(f"daily/{day(n)}", of_day[SCORED])
    world.write("attributes", people[ATTRIBUTES])
    window = people[people["n"].between(1, 3)]
    given = window["n"].map(lambda n: "test" if n == 1 else "fit")
    world.write("whole/ds=2027-01-01", window[SCORED].assign(given=given))
    with tiny_tables(spark):
        done = world.ran("calibrate", **sections(world))
        assert computed(done) == [day(n) for n in (3, 2, 1, 0)]
        yield world


def sections(world: World, before: int = 0, **more: Any) -> dict[str, Any]:
    there = {"ds": day(before).partition("=")[2]}
    plain: dict[str, Any] = {
        "scored": {"path": str(world.root / "daily"), "partition": there},
        "output": {"partition": there},
        "cells": {"path": str(world.root / "cells")},
        "learn": {"column": "ds", "last": 3, "mature_after": 1},
        "split": {"by": "time"},
    }
    for name, section in more.items():
        plain[name] = {**plain[name], **section} if isinstance(section, dict) and name in plain else section
    return plain


def computed(done: Any) -> list[str]:
    return sorted(done.summary["learned"]["computed"])


def trees(world: World) -> dict[str, Any]:
    """What the model has learned: its groups, its numbers, and the text of its trees."""
    folder = world.root / "model"
    found = json.loads((folder / "model.json").read_text())
    texts = {path.name: path.read_text() for path in folder.glob("trees_*.txt")}
    assert texts, "nothing was learned"
    return {name: found[name] for name in ("groups", "calibrator")} | texts


def test_the_trees_are_those_of_one_fit_to_all_rows_at_once(daily, monkeypatch):
    done = daily.ran("calibrate", **sections(daily))
    learned, told = trees(daily), done.summary["learned"]
    assert told["partitions"] == [day(n) for n in (3, 2, 1)]
    assert (told["held_out"], told["rows"], told["test"]) == (day(1), 3 * ROWS, ROWS)
    assert done.summary["rows"]["test"] == ROWS
    # Its own rows are scored, and nobody has learned from them.
    output = daily.output(done)
    assert len(output) == ROWS
    assert output["split"].isna().all()
    assert output["label"].notna().all()
    monkeypatch.setattr(driver_cells, "_FEW", 0)  # and to cells that stay in the cluster
    whole = daily.ran(
        "calibrate",
        scored={"path": str(daily.root / "whole"), "partition": {"ds": "2027-01-01"}},
        output={"partition": {"ds": "2027-01-01"}},
        cells={"path": str(daily.root / "other cells")},
        split={"column": "given"},
    )
    assert trees(daily) == learned
    ours, theirs = done.summary["metrics"], whole.summary["metrics"]
    assert ours["before"]["loss"] == pytest.approx(theirs["before"]["loss"], abs=1e-8)
    # After calibration the rows of one cell are taken together, to which the loss is blind, nearly.
    assert ours["after"]["loss"] == pytest.approx(theirs["after"]["loss"], abs=1e-4)
    for m in ("5", "10"):
        error = {stage: [run[stage]["by_level"][m]["mc_error"] for run in (ours, theirs)] for stage in ours}
        assert error["before"][0] == pytest.approx(error["before"][1], abs=1e-8)
        assert error["after"][0] == pytest.approx(error["after"][1], abs=0.02)


def test_a_partition_whose_labels_have_changed_is_computed_alone(daily):
    labels = {
        "path": str(daily.root / "labels"),
        "key": KEY,
        "label": "truth",
        "partition": {"ds": "2026-11-26"},
    }
    apart: dict[str, Any] = {"path": str(daily.root / "unlabelled")}
    for n in range(4):
        table = pd.read_parquet(daily.root / "daily" / day(n) / "part-0.parquet")
        daily.write(f"unlabelled/{day(n)}", table.drop(columns="label"))
        if n:  # those of today have not come
            daily.write(f"labels/{day(n)}", table[[*KEY, "label"]].rename(columns={"label": "truth"}))
    of = sections(daily, scored=apart, labels=labels, cells={"path": str(daily.root / "late")})
    done = daily.ran("calibrate", **of)
    assert computed(done) == [day(n) for n in (3, 2, 1)]
    assert daily.output(done)["label"].isna().all()
    before = content(daily.root / "late")
    daily.change(f"labels/{day(2)}", lambda t: t.assign(truth=1 - t["truth"]))
    again = daily.ran("calibrate", **of)
    assert again.summary["learned"]["computed"] == {day(2): "labels has changed"}
    after = content(daily.root / "late")
    # By this a backfill knows that the day is to be learned again.
    manifests = [run.summary["paths"]["manifest"].removeprefix("file:") for run in (done, again)]
    one, two = (json.loads(Path(manifest).read_text())["inputs"] for manifest in manifests)
    changed = {name for name in one if one[name] != two[name]}
    assert {name for name in changed if name.startswith("learn.")} == {f"learn.{day(2)}"}
    assert {name.split("/")[0] for name in after if after[name] != before.get(name)} == {day(2)}


def test_kept_cells_that_are_damaged_are_told_and_computed_again(daily):
    daily.ran("calibrate", **sections(daily))
    learned, cells = trees(daily), daily.root / "cells"
    form = cells / day(0) / "cells.json"
    form.write_text(form.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    torn = next((cells / day(1) / "cells").glob("*.parquet"))
    torn.write_bytes(torn.read_bytes()[:-20])
    bent = next((cells / day(2) / "cells").glob("*.parquet"))
    whole = bytearray(bent.read_bytes())
    whole[len(whole) // 2] ^= 255
    bent.write_bytes(whole)
    for checksum in cells.rglob(".*.crc"):
        checksum.unlink()
    shutil.rmtree(cells / day(3))
    told = daily.ran("calibrate", **sections(daily)).summary["learned"]["computed"]
    assert "schema version is 2" in told[day(0)]
    assert "torn" in told[day(1)]
    assert "changed after they were written" in told[day(2)]
    assert "no kept cells" in told[day(3)]
    assert trees(daily) == learned


def test_cells_that_another_run_replaces_while_they_are_read_are_not_taken_for_those_before(daily):
    daily.ran("calibrate", **sections(daily))
    cells, find = daily.root / "cells", KeptStore.find
    late = {"cells": {"path": str(daily.root / "late cells")}}
    daily.ran("calibrate", **sections(daily, **late, calibrator={"score_bins": 3}))

    def then_replaced(self: KeptStore, wanted: Any) -> Any:
        told = find(self, wanted)
        shutil.rmtree(cells / day(2))
        shutil.copytree(daily.root / "late cells" / day(2), cells / day(2))
        return told

    with mock.patch.object(KeptStore, "find", then_replaced):
        daily.refused(f"{day(2)}: another run has replaced", 75, "calibrate", **sections(daily))
    shutil.rmtree(cells / day(2))


def test_how_large_a_group_must_be_needs_no_rows_to_be_read_again(daily):
    daily.ran("calibrate", **sections(daily))
    done = daily.ran("calibrate", **sections(daily, groups={**GROUPS, "min_share": 0.4}))
    assert not computed(done)
    assert done.summary["groups"] < 8


def test_old_days_weigh_less(daily):
    daily.ran("calibrate", **sections(daily))
    even = trees(daily)
    done = daily.ran("calibrate", **sections(daily, learn={"half_life": 1}))
    assert not computed(done)
    assert trees(daily) != even


def test_a_missing_day_is_refused_or_left_out_as_asked(daily):
    shutil.move(daily.root / "daily" / day(2), daily.root / "away")
    try:
        daily.refused(
            f"1 of the 3 partitions .* {day(2)}, which has no rows", 3, "calibrate", **sections(daily)
        )
        done = daily.ran("calibrate", **sections(daily, learn={"allow_missing": True}))
    finally:
        shutil.move(daily.root / "away", daily.root / "daily" / day(2))
    assert done.summary["learned"]["missing"] == [day(2)]
    assert done.summary["learned"]["rows"] == 2 * ROWS


def test_a_day_without_labels_is_refused(daily):
    shutil.copytree(daily.root / "daily", daily.root / "blank")
    daily.change(f"blank/{day(3)}", lambda t: t.assign(label=pd.array([None] * len(t), "Float64")))
    blank = {
        "scored": {"path": str(daily.root / "blank")},
        "cells": {"path": str(daily.root / "blank cells")},
    }
    daily.refused(f"{day(3)}, which has no labels", 3, "calibrate", **sections(daily, **blank))


def test_a_window_before_all_days_has_nothing_to_learn_from(daily):
    far = {"learn": {"mature_after": 20, "allow_missing": True}}
    daily.refused(
        "none from ds=2026-11-04 to ds=2026-11-06 can be learned from",
        3,
        "calibrate",
        **sections(daily, **far),
    )


def test_only_those_needed_and_the_newest_are_kept_and_nothing_of_others_is_removed(daily):
    daily.ran("calibrate", **sections(daily))
    cells = daily.root / "cells"
    mine = cells / "ds=2026-01-01"
    mine.mkdir()
    (mine / "cells.json").write_text("mine")
    daily.ran("calibrate", **sections(daily, 1, cells={"keep": 4}))
    found = sorted(path.name for path in cells.iterdir())
    assert found == ["ds=2026-01-01", *(day(n) for n in (4, 3, 2, 1))]
    assert (mine / "cells.json").read_text() == "mine"
    shutil.rmtree(mine)


def test_somebody_elses_folder_is_not_replaced(daily):
    there = daily.root / "others" / day(2)
    there.mkdir(parents=True)
    (there / "notes.txt").write_text("mine")
    others = {"cells": {"path": str(daily.root / "others")}}
    daily.refused("this program has not made", 2, "calibrate", **sections(daily, **others))
    assert (there / "notes.txt").read_text() == "mine"


def test_weights_that_do_not_fit_the_unit_are_refused(daily):
    heavy = {"cells": {"path": str(daily.root / "heavy"), "typical_weight": 1e6}}
    daily.refused("set that to about the mean weight", 3, "calibrate", **sections(daily, **heavy))


def test_without_a_window_a_run_keeps_its_cells_and_learns_from_them(daily):
    alone = {"cells": {"path": str(daily.root / "alone")}, "learn": None, "split": {"by": "hash"}}
    done = daily.ran("calibrate", **sections(daily, **alone))
    assert done.summary["learned"]["partitions"] == computed(done) == [day(0)]
    assert set(daily.output(done)["split"]) == {"fit", "early_stopping", "test"}

"""A host in New York on the day the clocks go back, with a strict umask, a small driver, and no libgomp."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest

from .conftest import GROUPS, KEY, Child, Done, World, people_table, read, run_child


@dataclass(frozen=True)
class Strange:
    """What jobs did on a strange host, and here on the same rows, with the model that was made there."""

    world: World
    child: Child
    rows: int
    audited_here: Done
    scored_here: Done


@pytest.fixture(scope="module")
def strange(spark: Any, ready: Path, tmp_path_factory: Any) -> Strange:
    """Jobs under New York's clock and umask 077, with 1 GiB of heap, 8 MiB for results, and no libgomp.

    The input is of the day on which the clocks go back: its keys are dates, and the hour that comes twice
    orders the rows of one key.
    """
    root = tmp_path_factory.mktemp("strange") / "world"
    shutil.copytree(ready, root)
    world = World(spark, root)
    rows = 50_000
    people = people_table(rows, seed=8).assign(w=1.0)
    days = pd.to_datetime("2026-10-31") + pd.to_timedelta(np.arange(rows) // 2 % 3, unit="D")
    people = people.assign(day=days.date)
    # 01:30 EDT, then 01:30 EST: one hour apart, and one text on a clock in New York.
    early, late = pd.Timestamp("2026-11-01T05:30Z"), pd.Timestamp("2026-11-01T06:30Z")
    table = pd.concat([people.assign(at=late), people.iloc[:50].assign(score=0.5, at=early)])
    world.write("scored", table[[*KEY, "day", "score", "label", "w", "at"]])
    world.write("attributes", people[[*KEY, "day", "sex", "age", "job"]])
    key = [*KEY, "day"]
    sections: dict[str, Any] = {
        "scored": {"key": key, "dedupe": {"latest_by": "at"}},
        "attributes": [{"path": str(root / "attributes"), "key": key}],
        "groups": {**GROUPS, "predicates": [{"name": "All Saints", "where": "day = '2026-11-01'"}]},
        "calibrator": {"engine": "auto", "score_bins": 5000},
    }
    config = str(world.configure(**sections, report={"path": str(root / "report.html")}))
    commands = [["calibrate", "--config", config], ["score", "--config", config]]
    child = run_child(
        "strange-host", *commands, env={"TZ": "America/New_York"}, conf={"spark.driver.maxResultSize": "8m"}
    )
    assert len(child.jobs) == 2, child.log[-4000:]
    shutil.copytree(root, root.parent / "here")
    here = World(spark, root.parent / "here")
    sections["attributes"] = [{"path": str(here.root / "attributes"), "key": key}]
    return Strange(world, child, rows, here.run("audit", **sections), here.ran("score", **sections))


def test_the_same_output_in_new_york(strange):
    """Keys that are dates, and rows ordered by the hour that comes twice: bit for bit as under UTC."""
    there, here = strange.child.jobs[1], strange.scored_here
    assert there.exit_code == 0, there.summary
    assert there.summary["rows"] == here.summary["rows"]
    assert there.summary["rejected_by_reason"] == {"superseded": 50}
    one, other = (read(done.summary["paths"]["output"]) for done in (there, here))
    assert len(one) == strange.rows
    assert not (one["score"][:50] == 0.5).any()  # the rows of 01:30 EST stand, those of 01:30 EDT do not
    assert one.equals(other)


def test_the_same_split_and_metrics_in_new_york(strange):
    calibrated = strange.child.jobs[0]
    assert calibrated.exit_code == 0, calibrated.summary
    before, audited = (
        calibrated.summary["metrics"]["before"],
        strange.audited_here.summary["metrics"]["before"],
    )
    assert before["loss"] == pytest.approx(audited["loss"], abs=1e-12)
    for m, level in before["by_level"].items():
        assert level["mc_error"] == pytest.approx(audited["by_level"][m]["mc_error"], abs=1e-12)
    assert np.isclose(calibrated.summary["rows"]["test"] / strange.rows, 0.4, atol=0.01)


def test_only_sums_reach_a_small_driver(strange):
    """1 GiB of heap and 8 MiB for results; every row has a cell of its own, nearly."""
    calibrated, scored = strange.child.jobs
    assert (calibrated.exit_code, scored.exit_code) == (0, 0), (calibrated.summary, scored.summary)
    assert calibrated.summary["cells"] * 13 * 8 > 8 * 2**20 / 4  # more than one piece
    assert scored.summary["rows"]["scored"] == strange.rows
    assert "maxResultSize" not in strange.child.log


@pytest.mark.synapseml
def test_the_driver_trains_and_the_manifest_names_it(strange):
    done, official = strange.child.jobs[0], f"lightgbm {lightgbm.__version__} on the driver"
    assert done.exit_code == 0, (done.summary, strange.child.log[-3000:])
    assert done.summary["engine"] == official
    manifest = json.loads(Path(done.summary["paths"]["manifest"].removeprefix("file:")).read_text())
    assert manifest["engine"] == official
    assert "SynapseML does not load: the official LightGBM trains" in done.log
    assert "UnsatisfiedLinkError" in done.log
    assert done.summary["stages"][0]["trees"] > 0
    text = (strange.world.root / "model" / "trees_0.txt").read_text()
    assert lightgbm.Booster(model_str=text).num_trees() == done.summary["stages"][0]["trees"]
    after, before = done.summary["metrics"]["after"], done.summary["metrics"]["before"]
    assert after["loss"] < before["loss"]


def test_files_are_for_whom_the_umask_says(strange):
    """Umask 077: nothing that a run has left behind is for anybody but its owner."""
    done = strange.child.jobs[0]
    places = [Path(path.removeprefix("file:")) for path in done.summary["paths"].values()]
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("*"))]
    assert len(files) > 8
    open_to_others = [str(file) for file in files if file.stat().st_mode & 0o077]
    assert open_to_others == []

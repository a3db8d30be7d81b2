"""A partition without rows, or whose rows are all rejected: never stale but green."""

from __future__ import annotations

import pandas as pd
import pyarrow.parquet as pq
import pytest


def no_rows(world):
    file = world.root / "scored" / "part-0.parquet"
    pq.write_table(pq.read_table(file).slice(0, 0), file)
    return "it has no rows", 0


def all_rejected(world):
    world.change("scored", lambda t: t.assign(score=7.0))
    return r"all 240 rows are rejected: score_out_of_range 240", 240


def all_unmatched(world):
    world.change("attributes", lambda t: t.assign(house="x" + t["house"]))
    return "no attributes for any of 240 scored rows", 240


HOW = [no_rows, all_rejected, all_unmatched]


def sections(world, how):
    if how is not all_unmatched:
        return {}
    table = {"path": str(world.root / "attributes"), "key": ["house", "person"], "on_unmatched": "reject"}
    return {"attributes": [table]}


@pytest.mark.parametrize(("job", "how"), [*(("score", how) for how in HOW), ("calibrate", no_rows)])
def test_it_is_refused_and_the_old_output_stands(world, job, how):
    message, _ = how(world)
    done = world.refused(message, job=job, **sections(world, how))
    assert "allow_empty" in done.error


@pytest.mark.parametrize(("job", "how"), [*(("score", how) for how in HOW), ("calibrate", no_rows)])
def test_where_it_is_allowed_an_empty_table_replaces_the_old_rows(world, job, how):
    _, rejected = how(world)
    old = pd.read_parquet(world.out / "calibrated" / "ds=2026-11-26", partitioning=None)
    done = world.ran(job, allow_empty=True, **sections(world, how))
    output = world.output(done)
    assert (len(old), len(output)) == (240, 0)
    assert list(output) == list(old)
    kinds = {f.name: f.type for f in pq.read_table(done.summary["paths"]["output"], partitioning=None).schema}
    before = {
        f.name: f.type
        for f in pq.read_table(world.out / "calibrated" / "ds=2026-11-25", partitioning=None).schema
    }
    assert kinds == before
    assert done.summary["rows"]["rejected"] == rejected
    assert done.summary["metrics" if job == "calibrate" else "status"] in ({}, "ok")


def test_an_audit_of_no_rows(world):
    message, _ = no_rows(world)
    world.refused(message, job="audit")
    done = world.ran("audit", allow_empty=True)
    assert (done.summary["rows"]["in"], done.summary["metrics"]) == (0, {})
    assert len(pd.read_parquet(done.summary["paths"]["metrics"], partitioning=None)) == 0


@pytest.mark.parametrize("job", ["score", "calibrate"])
def test_a_refused_first_run_leaves_nothing_but_its_manifest(world, job):
    message, _ = no_rows(world)
    new = world.root / "new" / "place"
    world.refused(message, job=job, output={"path": str(new / "calibrated")})
    left = [path for path in new.rglob("*") if path.is_file()]
    assert all(path.parent.name.endswith("_manifests") for path in left)
    assert not (new / "calibrated_rejected").exists()

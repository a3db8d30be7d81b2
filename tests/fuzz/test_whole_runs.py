"""Whole runs of ``calibrate`` on tables and configurations made from a seed, judged by an oracle of its own.

A few pairs are in every run of the tests; ``MCSPARK_FUZZ=2000 pytest tests/fuzz/test_whole_runs.py`` tries
2,000 (never more), from ``MCSPARK_FUZZ_FROM=SEED``. One alone, such as one that failed: ``MCSPARK_FUZZ=1``.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import structlog
from judged_rows import Judged, judged, key_of
from oracle import close, groups_of, keys_of, measured
from pairs import pair
from refusals import refusals
from shapes import DAY, Pair

from tests.tiny import tiny_tables

FIRST = int(os.environ.get("MCSPARK_FUZZ_FROM", "0"))
PAIRS = min(int(os.environ.get("MCSPARK_FUZZ", "25")), 2000)
DOCUMENTED = (0, 2, 3, 4)
OLD_DAY = "2026-11-25"


@dataclass(frozen=True)
class Done:
    """How a run ended."""

    code: int
    summary: dict[str, Any]
    log: str


def calibrate(config: Path) -> Done:
    """The job as its command runs it; the session outlives it."""
    from mcspark.cli.jobs import app

    def end(_: Any, code: int) -> None:
        raise SystemExit(code)

    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch("mcspark.pipelines.job.finish", end),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        app(["calibrate", "--config", str(config)])
    structlog.reset_defaults()
    return Done(int(ended.value.code or 0), json.loads(out.getvalue().splitlines()[-1]), err.getvalue())


@pytest.fixture(scope="module")
def session(spark: Any) -> Iterator[Any]:
    """Spark, set up for tables of a few dozen rows."""
    with tiny_tables(spark):
        yield spark


@pytest.fixture(scope="module")
def old(session: Any, tmp_path_factory: Any) -> dict[bool, Path]:
    """Outputs of earlier runs, with partitions and without."""
    places = {}
    for parted in (False, True):
        root = tmp_path_factory.mktemp("old")
        first = next(case for case in map(pair, range(100)) if not case.odd and not refusals(case))
        for day in (OLD_DAY, DAY) if parted else (DAY,):
            first.config["output"] = {"path": "table"} | ({"partition": {"ds": day}} if parted else {})
            shutil.rmtree(root / "in", ignore_errors=True)
            done = calibrate(first.write(root))
            assert done.code == 0, done.summary
        places[parted] = root / "out"
    return places


def content(folder: Path) -> dict[str, str]:
    """Every file by a hash of its bytes; but for manifests, and for what a gate has refused."""
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and "_manifests" not in str(p) and "_refused" not in str(p)
    }


def read(path: str) -> pd.DataFrame:
    """A written table, by another reader."""
    files = sorted(Path(path.removeprefix("file:")).glob("*.parquet"))
    return pa.concat_tables([pq.read_table(f, partitioning=None) for f in files]).to_pandas(
        integer_object_nulls=True, date_as_object=True
    )


@pytest.mark.parametrize("seed", range(FIRST, FIRST + PAIRS))
def test_a_run_publishes_what_the_rows_say_or_nothing(seed, session, old, tmp_path, monkeypatch):
    if seed % 4 == 3:  # these are summed up in the cluster, as many rows are
        monkeypatch.setattr("mcspark.ml.cells.driver_cells._FEW", 0)
    case = pair(seed)
    parted = "partition" in case.config["output"]
    shutil.copytree(old[parted], tmp_path / "out")
    config = case.write(tmp_path)
    before = content(tmp_path / "out")
    done = calibrate(config)
    told = f"seed {seed}: exit {done.code}, odd {case.odd}: {done.summary.get('error')}"
    if os.environ.get("MCSPARK_FUZZ_TELL"):
        with Path(os.environ["MCSPARK_FUZZ_TELL"]).open("a") as file:
            file.write(told[:600] + "\n")
    assert done.code in DOCUMENTED, f"{told}\n{done.log[-4000:]}"
    expected = refusals(case)
    if done.code:
        error = str(done.summary["error"])
        assert content(tmp_path / "out") == before, told
        assert any(r.code == done.code and re.search(r.words, error, re.DOTALL) for r in expected), told
        if done.code == 4:
            check_gate(case, done.summary)
        return
    assert not any(refusal.sure for refusal in expected), f"{told}: {expected}"
    if parted:
        now = content(tmp_path / "out")
        for name, digest in before.items():
            assert f"ds={OLD_DAY}/" not in name or now[name] == digest, told
    rows = judged(case)
    check_rows(case, rows, done.summary)
    check_metrics(case, rows, done.summary)


def check_rows(case: Pair, rows: Judged, summary: dict[str, Any]) -> None:
    """Rows in = scored + rejected; accepted keys once, with their values; rejected ones by reason."""
    output, rejected = read(summary["paths"]["output"]), read(summary["paths"]["rejected"])
    counts, scored = summary["rows"], case.config["scored"]
    assert counts["in"] == len(case.scored) == len(output) + len(rejected)
    assert (counts["scored"], counts["rejected"]) == (len(output), len(rejected))
    keys = keys_of(output, case.key)
    accepted = {key_of(row, case.key): row for row in rows.accepted}
    assert Counter(keys) == Counter(list(accepted))
    found = Counter(
        (key, tuple(sorted(why)))
        for key, why in zip(keys_of(rejected, case.key), rejected["reasons"], strict=True)
    )
    assert found == Counter(rows.rejected)
    for name in (scored["score"], scored["label"], scored.get("weight")):
        if name is None:
            continue
        given = [accepted[key][name] for key in keys]
        kind = case.types[name]
        want = np.array([np.nan if v is None else float(pa.scalar(v, kind).as_py()) for v in given])
        want = want if name == scored.get("weight") else np.clip(want, 0, 1)
        np.testing.assert_array_equal(output[name].to_numpy(float), want)
    assert output["calibrated_score"].between(0, 1).all()
    assert (output["split"].isna() == output[scored["label"]].isna()).all()
    if case.config["calibrator"]["method"] == "none":
        np.testing.assert_array_equal(output["calibrated_score"], output[scored["score"]])


def check_metrics(case: Pair, rows: Judged, summary: dict[str, Any]) -> None:
    """The summary's errors and losses, again from the rows that were written."""
    if not rows.accepted:
        assert summary["metrics"] == {}
        return
    again = recomputed(case, summary["paths"])
    assert summary["rows"]["labelled"] == again.labelled
    assert summary["rows"]["test"] == again.held_out
    if again.groups is None:
        return
    metrics = read(summary["paths"]["metrics"])
    named = set(metrics.loc[(metrics["metric"] == "share") & (metrics["stage"] == "after"), "group"])
    assert named == again.groups
    assert summary["groups"] == len(again.groups)
    for (stage, m), want in again.errors.items():
        told = summary["metrics"][stage]
        found = told["by_level"][str(m)]
        for what in ("mc_error", "ma_error", "loss"):
            assert close(found[what], want[what]), (stage, m, what, found[what], want[what])
        assert close(told["loss"], want["score_loss"]), (stage, told["loss"], want["score_loss"])
        limit = case.config.get("gate", {}).get("max_mc_error")
        if stage == "after" and limit is not None:
            assert want["mc_error"] is not None
            assert want["mc_error"] <= limit + 1e-9


def check_gate(case: Pair, summary: dict[str, Any]) -> None:
    """The candidate that was refused, kept aside, is one that the limit refuses."""
    again, limit = recomputed(case, summary["paths"]), case.config.get("gate", {}).get("max_mc_error")
    if again.groups is None or limit is None:
        return
    after = [want["mc_error"] for (stage, _), want in again.errors.items() if stage == "after"]
    assert any(error is None or error > limit - 1e-9 for error in after), (after, limit)


@dataclass(frozen=True)
class Recomputed:
    """Counts, names of groups (None where they cannot be told) and errors by stage and grid."""

    labelled: int
    held_out: int
    groups: set[str] | None
    errors: dict[tuple[str, int], dict[str, float | None]]


def recomputed(case: Pair, paths: dict[str, str]) -> Recomputed:
    """What the written rows say, and the groups that the attributes say."""
    output = read(paths["output"])
    scored, evaluation = case.config["scored"], case.config["evaluation"]
    label = output[scored["label"]].to_numpy(float)
    labelled = ~np.isnan(label)
    weight = output[scored["weight"]].to_numpy(float) if "weight" in scored else np.ones(len(output))
    test = (output["split"] == "test").to_numpy()
    groups = groups_of(case, keys_of(output, case.key), labelled, weight)
    known = not (groups.close or any(c.fails for c in case.conditions))
    members = {name: member[test] for name, member in groups.members.items()}
    errors = {
        (stage, m): measured(
            output[column].to_numpy(float)[test], label[test], weight[test], members, m,
            evaluation["min_group_rows"],
        )
        for stage, column in (("before", scored["score"]), ("after", "calibrated_score"))
        for m in evaluation["levels"]
    }  # fmt: skip
    return Recomputed(int(labelled.sum()), int(test.sum()), set(members) if known else None, errors)

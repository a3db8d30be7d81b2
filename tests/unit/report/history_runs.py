"""An output with a past, as files: manifests, metrics tables and reports; the numbers are made up."""

from __future__ import annotations

import copy
import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from report_runs import GROUPS, audited, calibrated

DAYS = [str(date(2026, 8, 1) + timedelta(days=i)) for i in range(30)]
BAD_DAY = DAYS[20]
"""The day on which the scores of the audits went wrong."""


def run_id(job: str, day: str, hour: int = 3) -> str:
    return f"{job}-{day.replace('-', '')}T{hour:02d}0000Z-0a1b2c3d"


def manifest(job: str, day: str, **changed: Any) -> dict[str, Any]:
    """The manifest of a run that tells nothing of what it has measured."""
    return {
        "rows": {"in": 6004, "scored": 6000, "rejected": 4, "labelled": 6000, "test": 1800},
        "rejected_by_reason": {"score_nan": 3, "null_key": 1},
        "seconds": {"read": 2.0, "check": 3.5},
        "inputs": {"scored": "a" * 64, "model": "b" * 64},
        "paths": {},
        "schema_version": 1,
        "run_id": run_id(job, day),
        "job": job,
        "status": "ok",
        "configuration": {
            "scored": {"path": "in", "partition": {"ds": day}},
            "output": {"path": "out", "partition": {"ds": day}},
            "report": {"path": f"reports/{day}.html"},
            "split": {"seed": 1 if day < DAYS[15] else 2},
        },
        "configuration_hash": "c" * 64,
        "versions": {"python": "3.11", "mcspark": "0.1.0"},
        **changed,
    }


def write(folder: Path, day: str, plain: dict[str, Any]) -> Path:
    file = folder / "calibrated" / f"_ds-{day}_manifests" / f"{plain['run_id']}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(plain))
    return file


def measured(job: str, day: str, rng: np.random.Generator) -> tuple[dict[str, Any], Any]:
    """An audit or a calibration of a day, and its metrics table."""
    facts = calibrated() if job == "calibrate" else audited()
    metrics = copy.deepcopy(facts.summary["metrics"])
    lead: dict[str, Any] = {"metric": "mc_error", "levels": 20, "blind": {}, "p_value": 0.4}
    for stage, found in metrics.items():
        factor = rng.normal(1, 0.03) * (3 if stage == "before" and day == BAD_DAY else 1)
        found["loss"] *= rng.normal(1, 0.01)
        found["worst_group_smece"] *= factor
        level = found["by_level"]["20"]
        level["mc_error"] *= factor
        level["interval"] = [end * factor for end in level["interval"] or (0.01, 0.05)]
        lead |= {stage: level["mc_error"], "noise_floor": level["noise_floor"] * rng.normal(1, 0.02)}
    table = facts.metrics.copy()
    shares = table["metric"] == "share"
    table.loc[shares, "value"] *= rng.normal(1, 0.01, shares.sum())
    told: dict[str, Any] = {"metrics": metrics, "lead": lead, "method": facts.summary["method"]}
    told["seconds"] = {"read": float(rng.normal(20, 1)), "cells": float(rng.normal(40, 2))}
    if job == "calibrate":
        told["stages"] = facts.summary["stages"]
    return manifest(job, day, **told), table


def write_history(folder: Path) -> Path:
    """Thirty days of audits, calibrations and scores, of which one failed, and some reports; the output."""
    rng = np.random.default_rng(5)
    for day in DAYS:
        for job in ("audit", "calibrate"):
            plain, table = measured(job, day, rng)
            place = folder / "calibrated_metrics" / f"run_id={plain['run_id']}"
            place.mkdir(parents=True)
            table.to_parquet(place / "part-0.parquet", index=False)
            plain["paths"] = {"metrics": f"/elsewhere/calibrated_metrics/run_id={plain['run_id']}"}
            if job == "audit" and day > DAYS[24]:
                page = folder / "reports" / f"{day} of <b>.html"
                page.parent.mkdir(exist_ok=True)
                page.write_text(f"<title>Calibration report {plain['run_id']}</title>")
                plain["paths"]["report"] = str(page)
            write(folder, day, plain)
        scored = manifest(
            "score", day, inputs={"scored": "a" * 64, "model": ("b" if day < DAYS[10] else "d") * 64}
        )
        if day == DAYS[-1]:
            scored = manifest(
                "score", day, status="contract", error="<script>alert('no key')</script>", rows=None
            )
        write(folder, day, scored)
    return folder / "calibrated"


__all__ = ["BAD_DAY", "DAYS", "GROUPS", "manifest", "run_id", "write", "write_history"]

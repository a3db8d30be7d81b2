"""Runs to report on, made by code: a small population whose group names are as bad as names can be."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
from official_trainer import official

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.lead import Lead
from mcspark.core.metrics.metrics import Metrics, measure
from mcspark.core.training.rounds import check_saturation, fit_stages
from mcspark.core.training.training_curve import training_curve
from mcspark.core.training.training_table import TreeSettings
from mcspark.ml.curves import curves_frame, pairs_frame
from mcspark.report.facts import RunFacts
from mcspark.report.metrics_table import metrics_frame

LEVELS = (10, 20)
THRESHOLDS = (Fraction(1, 2), Fraction(1, 5))
GROUPS = (
    "<script>alert('group')</script>",
    '$\\frac{cost}{2}$ & "quoted"',
    "a|b*c_d [link](x)",
    "_hidden",
    "länge " * 33,
    "日本語の群",
    "small",
)
SETTINGS = TreeSettings(learning_rate=0.3, max_trees=60, early_stopping_rounds=10)


@cache
def population(rows: int = 6000, seed: int = 3):
    """Score, label, membership and role of each row; scores are wrong by group and by level."""
    rng = np.random.default_rng(seed)
    member = rng.random((rows, len(GROUPS))) < [0.5, 0.3, 0.25, 0.4, 0.1, 0.2, 0.0]
    member[:3, 6] = True
    score = rng.beta(2, 3, rows)
    truth = np.clip(
        score + 0.2 * member[:, 0] - 0.25 * member[:, 1] * (score > 0.4) + 0.1 * member[:, 4], 0, 1
    )
    label = (rng.random(rows) < truth).astype(float)
    return score, label, member, rng.choice(3, rows, p=[0.45, 0.25, 0.3])


def measured(score, *, groups: tuple[str, ...] = GROUPS, intervals: bool = False, rows=None) -> Metrics:
    """Metrics of a score on the test rows, or on some others."""
    _, label, member, role = population()
    part = role == Role.test if rows is None else rows
    cells = Cells.from_rows(
        score[part], label[part], member[part], bins=ScoreBins(60, (1,) * 60), groups=groups
    )
    settings = {"draws": 60, "seed": 1, "min_rows": 20, "thresholds": THRESHOLDS}
    return measure(cells, LEVELS, intervals=intervals, **settings)


@cache
def calibrated(link: str = "identity", rounds: int = 1) -> RunFacts:
    """A calibration by trees."""
    score, label, member, role = population()
    cells = Cells.from_rows(score, label, member, bins=ScoreBins(60, (1,) * 60), role=role, groups=GROUPS)
    settings = TreeSettings(**{**vars(SETTINGS), "link": link})
    fit = fit_stages(cells, settings, official, rounds)
    saturation = check_saturation(cells, fit.stages, settings, official)
    after = measured(fit.stages.apply(score, member), intervals=True)
    rounding = {str(m): e.loss - after.loss for m, e in after.by_level.items()}
    metrics = {"before": measured(score), "after": after}
    return RunFacts(
        summary={
            "run_id": "calibrate-20261128T010203Z-0a1b2c3d",
            "method": "trees",
            "rows": {"in": 6004, "scored": 6000, "rejected": 4, "labelled": 6000, "test": after.rows},
            "rejected_by_reason": {"score_nan": 3, "null_key": 1},
            "unmatched": {"data/<attributes>": 12},
            "without_category": {"<b>age": 21},
            "groups": len(GROUPS),
            "signatures": len(cells.membership),
            "cells": len(cells),
            "stages": [{"trees": s.trees, "link": s.link} for s in fit.stages.stages],
            "metrics": {name: found.summary() for name, found in metrics.items()},
            "saturation": {
                "loss": saturation.loss,
                "loss_second": saturation.loss_second,
                "epsilon_loss": saturation.epsilon_loss,
                "epsilon_round": rounding,
                "bound": {m: math.sqrt(max(saturation.epsilon_loss + e, 0)) for m, e in rounding.items()},
            },
            "paths": {},
        },
        metrics=metrics_frame(metrics),
        configuration={"scored": {"path": "data/</pre><script>alert('path')</script>"}},
        versions={"python": "3.11", "mcspark": "0.1.0"},
        curves=curves_frame(fit.stages),
        pairs=pairs_frame(fit.stages),
        training=pd.DataFrame([vars(p) for p in training_curve(cells, fit.stages, fit.texts)]),
        dropped=[("<b>tiny</b>", "share 0.2 % is below 1 %")],
    )


@cache
def audited(*, nothing: bool = False) -> RunFacts:
    """An audit; with ``nothing``, one that had no row to judge."""
    score, *_ = population()
    rows = np.zeros(len(score), dtype=bool) if nothing else None
    metrics = measured(score, rows=rows, intervals=True)
    return RunFacts(
        summary={
            "run_id": "audit-20261128T010203Z-0a1b2c3d",
            "method": "none",
            "rows": {"in": 6000, "scored": 6000, "rejected": 0, "labelled": 6000, "test": metrics.rows},
            "rejected_by_reason": {},
            "unmatched": {},
            "groups": len(GROUPS),
            "signatures": 30,
            "metrics": {"before": metrics.summary()},
            "paths": {},
        },
        metrics=metrics_frame({"before": metrics}),
        configuration={},
    )


@cache
def rare(most: float = 0.0099, factor: float = 13) -> RunFacts:
    """A calibration of a rare label: scores in [0, ``most``), too large by a factor; then right."""
    rng = np.random.default_rng(2)
    score, role = rng.random(40_000) * most, np.full(40_000, int(Role.test))
    member = np.stack([np.ones(40_000, dtype=bool), rng.random(40_000) < 0.3], axis=1)
    label = (rng.random(40_000) < score / factor).astype(float)
    levels, bins, groups = (10, 20, 75), ScoreBins(300, (2,) * 300), ("everyone", "A")
    cells = {
        stage: Cells.from_rows(values, label, member, bins=bins, role=role, groups=groups)
        for stage, values in (("before", score), ("after", score / factor))
    }
    lead = Lead.of(levels, *cells.values())
    settings = {"draws": 100, "seed": 1, "min_rows": 20, "lead": lead}
    found = {s: measure(c, levels, intervals=s == "after", **settings) for s, c in cells.items()}
    rows = {"in": 40_000, "scored": 40_000, "rejected": 0, "labelled": 40_000, "test": 40_000}
    return RunFacts(
        summary={
            "run_id": "calibrate-20261128T010203Z-0a1b2c3d",
            "method": "multiaccuracy",
            "rows": rows,
            "lead": lead.summary(),
            "metrics": {stage: metrics.summary() for stage, metrics in found.items()},
            "paths": {},
        },
        metrics=metrics_frame(found),
        configuration={},
    )


def drifted(*, problems: tuple[str, ...] = ("the share of <b>x</b> has changed",), **changes) -> RunFacts:
    """An audit that was compared with an earlier run; the numbers are made up."""
    facts = audited()
    drift = {
        "against": "calibrate-20261101T010203Z-11111111",
        "stage": "after",
        "score_distance": 0.0123,
        "score_noise": 0.0201,
        "share_group": GROUPS[0],
        "share_then": 0.5,
        "share_now": 0.4567,
        "share_change": 0.0433,
        "share_noise": 0.0101,
        "mc_error": {
            "10": {"then": 0.01, "now": 0.05, "then_interval": [0.0, 0.012], "now_interval": [0.04, 0.06],
                   "worse": True},
            "20": {"then": 0.012, "now": 0.013, "then_interval": [None, None], "now_interval": [0.01, 0.02],
                   "worse": False},
            "50": {"then": 0.02, "now": 0.02, "then_interval": [None, None], "now_interval": [None, None],
                   "worse": False},
        },
        "problems": list(problems),
        **changes,
    }  # fmt: skip
    return replace(facts, summary={**facts.summary, "drift": drift})

"""Calibrators written out at random, and people to score."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.core.model.additive import AdditiveForm
from mcspark.core.model.stages import Stage, Stages
from mcspark.core.saved import SavedModel
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.ml.persistence import _plain


def form(n_groups: int, bins: int, rng: np.random.Generator, size: float = 0.1) -> AdditiveForm:
    every = [(i, j) for i in range(n_groups) for j in range(i + 1, n_groups)]
    pairs = np.array([p for p in every if rng.random() < 0.3], dtype=np.int64).reshape(-1, 2)
    return AdditiveForm(
        thresholds=np.sort(rng.random(bins - 1)),
        constant=float(rng.normal(0, size)),
        base=rng.normal(0, size, bins),
        curves=rng.normal(0, size, (n_groups, bins)),
        pairs=pairs,
        pair_values=rng.normal(0, size, len(pairs)),
    )


def families(condition: bool = True) -> tuple[Family, ...]:
    found = (
        Family("value", "SEX", (1, 2), columns=("SEX",)),
        Family("bins", "AGEP", (0, 1, 2), bins=(0.0, 30.0, 60.0, 120.0), columns=("AGEP",)),
        Family("divide", "OCCP", (0, 1, 2), divide_by=100.0, columns=("OCCP",)),
        Family("value", "job", ("a", "b"), columns=("job",)),
    )
    where = "(`SEX` = 2) AND (`AGEP` >= 65)"
    old = Family("predicate", "old women", (1,), where=where, columns=("AGEP", "SEX"))
    return (*found, old) if condition else found


def model(links: tuple[str, ...], seed: int = 0, condition: bool = True, bins: int = 40) -> SavedModel:
    rng = np.random.default_rng(seed)
    groups = FittedGroups(families(condition), ((0, 3), (1, 8)))
    stages = tuple(Stage(link, form(len(groups.names), bins, rng), 7) for link in links)
    calibrator = Stages(stages, groups.names)
    columns = {"scoreCol": "score", "predictionCol": "calibrated_score"}
    return SavedModel("trees" if links else "none", groups, calibrator, columns, 0, None)


def people(rows: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    score = rng.random(rows)
    score[:5] = [0.0, 1.0, 0.5, 1e-9, 1 - 1e-9][:rows]
    return pd.DataFrame(
        {
            "score": score,
            "SEX": rng.integers(0, 4, rows),
            "AGEP": rng.integers(-2, 130, rows),
            "OCCP": rng.integers(0, 400, rows),
            "job": rng.choice(["a", "b", "other"], rows),
        }
    )


def write(saved: SavedModel, folder: Path) -> Path:
    plain = _plain(MulticalibratorModel(saved.groups, saved.calibrator, method=saved.method))
    (folder / "model").mkdir()
    (folder / "model" / "model.json").write_text(json.dumps(plain))
    return folder / "model"

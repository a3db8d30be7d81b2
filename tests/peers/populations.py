"""mcspark's trees beside Meta's mcgrad on several synthetic populations, in memory, without Spark.

``python tests/peers/populations.py [--rows 180000] [--seeds 8] [--min-share 0.01] [--features]``

One population says little: the MC error is a maximum, and its luck is as large as the difference between two
good methods. Both learn from 60 % of the rows; the errors are those of the other 40 %, over the groups of at
least 1 %. mcspark sees groups of at least ``--min-share``, and takes the learning rate of the lowest loss on
its early-stopping rows; mcgrad sees every category, and so does mcspark at its defaults, in a row of its own,
with ``--features``. The seconds are those of all fits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from compare_mcgrad import mcgrad
from numpy.typing import NDArray

from mcspark.acs.population import population_arrays
from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.features import Features
from mcspark.core.cells.levels import ScoreBins, base_levels
from mcspark.core.metrics.calibration_error import level_errors
from mcspark.core.metrics.smooth_ece import group_smooth_ece
from mcspark.core.training.recipe import fit_auto
from mcspark.core.training.rounds import StagesFit, fit_stages
from mcspark.core.training.training_table import TreeSettings
from mcspark.ml.training.driver_training import DriverTrainer
from mcspark.runtime.tasks.executors import driver_cores

LEVELS = 20
BASE = base_levels([LEVELS, 100])
AGES, SCHOOLING = (0, 5, 18, 25, 35, 45, 65, 85, 100, 120), (0, 16, 18, 20, 21, 22, 25)
REPORTED_SHARE = 0.01
LEARNING_RATES = (0.1, 0.3, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=180_000)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--min-share", type=float, default=REPORTED_SHARE)
    parser.add_argument("--features", action="store_true")
    options = parser.parse_args()
    found = pd.DataFrame(row for seed in range(1, options.seeds + 1) for row in _one(seed, options))
    print(found.round(5).to_string(index=False))
    print(found.drop(columns="seed").groupby("score", sort=False).mean().round(5).to_string())


def _one(seed: int, options: argparse.Namespace) -> list[dict[str, object]]:
    people = population_arrays(options.rows, seed)
    families = {
        "race": people["RAC1P"], "sex": people["SEX"], "age": np.digitize(people["AGEP"], AGES),
        "schooling": np.digitize(people["SCHL"], SCHOOLING), "occupation": people["OCCP"] // 100,
    }  # fmt: skip
    columns = [values == v for values in families.values() for v in np.unique(values)]
    member = np.column_stack(columns)
    share = member.mean(axis=0)
    drawn = np.random.default_rng(seed).random(options.rows)
    role = np.select([drawn < 0.4, drawn < 0.58], [Role.test, Role.early_stopping], Role.fit)
    score, label, test = people["score"], people["label"], role == Role.test
    reported = member[np.ix_(test, share >= REPORTED_SHARE)]

    def row(name: str, scores: np.ndarray, seconds: float = 0.0) -> dict[str, object]:
        cells = Cells.from_rows(scores, label[test], reported, bins=ScoreBins(BASE, (2,) * BASE))
        error, smooth = level_errors(cells, LEVELS).mc_error, group_smooth_ece(cells, 1).worst
        loss = float(np.mean((scores - label[test]) ** 2))
        return {"seed": seed, "score": name, "MC error": error, "smECE": smooth, "loss": loss, "fit": seconds}

    start = time.monotonic()
    groups = member[:, share >= options.min_share]
    weights = np.histogram(score, BASE * 1024, (0.0, 1.0))[0].astype(np.float64)
    cells = Cells.from_rows(
        score, label, groups, bins=ScoreBins.from_fine_weights(BASE, weights, 255), role=role
    )
    found = [
        fit_stages(cells, TreeSettings(rate, link="logit", refit=True), DriverTrainer(driver_cores()), 3)
        for rate in LEARNING_RATES
    ]
    stages = min(found, key=_held_out).stages
    seconds = time.monotonic() - start
    learned = [_learned(families, score, label, role, cells.bins, row)] if options.features else []
    rows = pd.DataFrame(
        {"score": score, "label": label, "weight": 1.0, "split": np.where(test, "test", "fit")}
    )
    theirs, told = mcgrad(rows.assign(**{f"family_{k}": v.astype(str) for k, v in families.items()}))
    return [
        row("as it came", score[test]),
        row("the truth", people["truth"][test]),
        row("mcspark", stages.apply(score[test], groups[test]), seconds),
        *learned,
        row("mcgrad", np.clip(theirs, 0, 1), told["fit"]),
    ]


def _learned(
    families: Mapping[str, NDArray[Any]],
    score: NDArray[Any],
    label: NDArray[Any],
    role: NDArray[Any],
    bins: ScoreBins,
    row: Callable[..., dict[str, object]],
) -> dict[str, object]:
    """The row of mcspark at its defaults with ``features: {}``: every row of the table is a signature."""
    start = time.monotonic()
    codes = np.column_stack([np.unique(v, return_inverse=True)[1] + 1 for v in families.values()])
    sizes = tuple(codes.max(axis=0).tolist())
    names = tuple(str(i) for i in range(sum(sizes)))
    features = Features(names, sizes, tuple(name in ("age", "schooling") for name in families), codes)
    every = np.arange(len(score))
    numbered = (every[:, None] >> np.arange(20)[::-1]) & 1 > 0
    cells = Cells.from_rows(score, label, numbered, bins=bins, role=role)
    cells = replace(cells, groups=(), membership=numbered[:, :0], features=features)
    stages = fit_auto(cells, TreeSettings(), DriverTrainer(driver_cores())).fit.stages
    test = role == Role.test
    found = stages.apply_signatures(score[test], every[test], features.members)
    return row("mcspark, features", found, time.monotonic() - start)


def _held_out(fit: StagesFit) -> float:
    """Loss on the early-stopping rows of the stages that were kept, before they were grown again."""
    return min((found.loss_after for found in fit.rounds if found.kept), default=np.inf)


if __name__ == "__main__":
    main()

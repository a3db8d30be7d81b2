"""A small table of people whose scores are wrong by group, and one calibrator fitted to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mcspark import Multicalibrator

SECTION: dict[str, Any] = {
    "min_share": 0.05,
    "columns": [{"column": "SEX"}, {"column": "AGEP", "bins": [0, 30, 60, 120]}, {"column": "job"}],
    "predicates": [{"name": "young women", "where": "SEX = 2 AND AGEP < 30"}],
}
NAMES = ("SEX=1", "SEX=2", "AGEP=[0,30)", "AGEP=[30,60)", "AGEP=[60,120)", "job=a", "job=b", "young women")
SETTINGS: dict[str, Any] = {
    "groups": SECTION,
    "weightCol": "w",
    "recipe": "paper",
    "learningRate": 0.3,
    "maxTrees": 60,
    "earlyStoppingRounds": 8,
    "levels": [10, 20],
    "scoreBins": 30,
}


def people_table(rows: int, seed: int) -> pd.DataFrame:
    """Rows with score, label, weight, split, and attributes of which some are missing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"id": np.arange(rows), "SEX": rng.integers(1, 3, rows), "AGEP": rng.integers(16, 90, rows)}
    )
    table["job"] = rng.choice(["a", "b", "rare", None], rows, p=[0.5, 0.3, 0.02, 0.18])
    table["score"] = rng.random(rows)
    truth = table["score"] + 0.25 * (table["SEX"] == 2) - 0.2 * (table["AGEP"] >= 60) * (table["score"] > 0.4)
    truth = np.clip(truth + 0.1 * (table["job"] == "b"), 0, 1)
    table["label"] = (rng.random(rows) < truth).astype(float)
    table["w"] = rng.integers(1, 4, rows).astype(float)
    table["split"] = rng.choice(["fit", "early_stopping", "test"], rows, p=[0.5, 0.25, 0.25])
    return table


def membership(table: pd.DataFrame) -> np.ndarray:
    """Groups of each row in the order of :data:`NAMES`, by pandas alone."""
    sex, age, job = table["SEX"], table["AGEP"], table["job"]
    inside = [
        sex == 1, sex == 2, age.between(0, 30, "left"), age.between(30, 60, "left"),
        age.between(60, 120, "left"), job == "a", job == "b", (sex == 2) & (age < 30),
    ]  # fmt: skip
    return np.column_stack(inside).astype(bool)


@dataclass
class Fitted:
    """The shared model, the table it was fitted to, and its scores there."""

    estimator: Any
    model: Any
    table: pd.DataFrame
    frame: Any
    scored: pd.DataFrame


@pytest.fixture(scope="session")
def people() -> pd.DataFrame:
    return people_table(4000, seed=5)


@pytest.fixture(scope="session")
def people_frame(spark, people):
    frame = spark.createDataFrame(people).persist()
    yield frame
    frame.unpersist()


@pytest.fixture(scope="session")
def fitted(people, people_frame) -> Fitted:
    estimator = Multicalibrator(**SETTINGS)
    model = estimator.fit(people_frame)
    scored = model.transform(people_frame).orderBy("id").toPandas()
    return Fitted(estimator, model, people, people_frame, scored)

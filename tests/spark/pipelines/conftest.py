"""Small real tables on disk, and one calibration of them that many tests look at."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from mcspark.acs.population import population_arrays
from mcspark.config import Config, load_config
from mcspark.pipelines.calibrate import calibrate
from mcspark.pipelines.run import Run, new_run_id

KEY = ["SERIALNO", "SPORDER"]
ATTRIBUTES = ["RAC1P", "SEX", "AGEP"]
GROUPS: dict[str, Any] = {
    "min_share": 0.05,
    "columns": [{"column": "RAC1P"}, {"column": "SEX"}, {"column": "AGEP", "bins": [0, 25, 45, 65, 120]}],
    "predicates": [{"name": "women_65_plus", "where": "SEX = 2 AND AGEP >= 65"}],
}
DAY = {"ds": "2026-11-26"}
UNLABELLED, BAD = 400, 4


def population(rows: int = 5000, seed: int = 3) -> pd.DataFrame:
    """People with labels, but for the first few hundred."""
    table = pd.DataFrame(population_arrays(rows, seed))
    table.loc[: UNLABELLED - 1, "label"] = np.nan
    return table


def write_tables(folder: Path, people: pd.DataFrame, *, files: int = 1) -> None:
    """``scored`` and ``attributes`` as Parquet files; NaN labels become null."""
    scored = people[[*KEY, "score", "label", "PWGTP"]].assign(PWGTP=people["PWGTP"].astype(float))
    for name, table in (("scored", scored), ("attributes", people[[*KEY, *ATTRIBUTES]])):
        (folder / name).mkdir(parents=True)
        for i in range(files):
            part = table.iloc[i::files]
            part.to_parquet(folder / name / f"part-{i}.parquet", index=False)


def add_columns(folder: Path, table: str, people: pd.DataFrame, *names: str) -> None:
    """Further columns of the people in the one file of a table that :func:`write_tables` has written."""
    file = folder / table / "part-0.parquet"
    pd.read_parquet(file).assign(**{n: people[n].to_numpy() for n in names}).to_parquet(file, index=False)


def plain_config(tables: Path, out: Path, **sections: Any) -> dict[str, Any]:
    """A configuration as a user would write it; sections are merged into it."""
    plain: dict[str, Any] = {
        "scored": {"path": str(tables / "scored"), "key": KEY, "weight": "PWGTP"},
        "attributes": [{"path": str(tables / "attributes"), "key": KEY}],
        "groups": GROUPS,
        "calibrator": {
            "recipe": "paper",
            "engine": "lightgbm",
            "learning_rate": 0.3,
            "max_trees": 30,
            "early_stopping_rounds": 8,
            "score_bins": 30,
        },
        "evaluation": {"levels": [10, 20], "draws": 20},
        "output": {"path": str(out / "calibrated"), "partition": DAY},
        "model": {"path": str(out / "model")},
    }
    for name, section in sections.items():
        plain[name] = {**plain.get(name, {}), **section} if isinstance(section, dict) else section
    return plain


def configuration(tables: Path, out: Path, **sections: Any) -> Config:
    """The same, through the file that the command line reads."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / "run.yaml"
    file.write_text(yaml.safe_dump(plain_config(tables, out, **sections)))
    try:
        return load_config(str(file), environ={}, needs=("output", "model"))
    finally:
        file.unlink()


def start(spark: Any, job: str, config: Config) -> Run:
    return Run(job, new_run_id(job), config, spark)


def content(folder: Path) -> dict[str, str]:
    """Every file below a folder, hidden ones too, with a hash of its bytes."""
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def read(path: str | Path) -> pd.DataFrame:
    """A published table, in the order of its key."""
    table = pd.read_parquet(path, partitioning=None)
    return table.sort_values([k for k in (*KEY, "id") if k in table], ignore_index=True)


@dataclass
class Calibrated:
    """A run of the main job: the people, their tables, and where it has written."""

    people: pd.DataFrame
    tables: Path
    out: Path
    config: Config
    summary: dict[str, Any]

    @property
    def output(self) -> pd.DataFrame:
        return read(self.summary["paths"]["output"])

    @property
    def folder(self) -> Path:
        """The folder of the tables and of what the run has written."""
        return self.out.parent


@pytest.fixture(scope="session")
def calibrated(spark, tmp_path_factory) -> Calibrated:
    """One run of the main job, with a few rows that break the contract."""
    folder = tmp_path_factory.mktemp("calibrated")
    people = population()
    people.loc[people.index[-BAD:], "score"] = [1.5, -0.2, np.inf, 2.0]
    write_tables(folder / "tables", people)
    neighbour = folder / "out" / "calibrated" / "ds=2026-11-25"
    neighbour.mkdir(parents=True)
    population(50).to_parquet(neighbour / "part-0.parquet")
    config = configuration(folder / "tables", folder / "out")
    summary = calibrate(start(spark, "calibrate", config))
    return Calibrated(people, folder / "tables", folder / "out", config, summary)

"""Small tables and a quick configuration for the jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import yaml

KEY = ["SERIALNO", "SPORDER"]

CALIBRATOR = {
    "recipe": "paper", "learning_rate": 0.3, "max_trees": 15, "early_stopping_rounds": 5, "score_bins": 20,
}  # fmt: skip


def write_tables(folder: Path, people: pd.DataFrame, files: int = 1) -> None:
    parts = {"scored": [*KEY, "score", "label"], "attributes": [*KEY, "RAC1P", "SEX", "AGEP"]}
    for name, columns in parts.items():
        (folder / name).mkdir(parents=True)
        for i in range(files):
            people[columns].iloc[i::files].to_parquet(folder / name / f"part-{i}.parquet", index=False)


def write_config(folder: Path, tables: Path, **sections: Any) -> Path:
    plain: dict[str, Any] = {
        "scored": {"path": str(tables / "scored"), "key": KEY},
        "attributes": [{"path": str(tables / "attributes"), "key": KEY}],
        "groups": {
            "min_share": 0.05,
            "columns": [{"column": "RAC1P"}, {"column": "SEX"}, {"column": "AGEP", "bins": [0, 30, 50, 120]}],
        },
        "calibrator": CALIBRATOR,
        "evaluation": {"levels": [10, 20], "draws": 10},
        "output": {"path": str(folder / "calibrated")},
        "model": {"path": str(folder / "model")},
        **sections,
    }
    file = folder / "run.yaml"
    file.write_text(yaml.safe_dump(plain))
    return file

"""Small person files with the columns of a real one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mcspark.acs.population import population_arrays


@pytest.fixture
def persons() -> pd.DataFrame:
    """1,500 employed persons, income and travel time included."""
    people = pd.DataFrame(population_arrays(1_500, seed=11, kind="real"))
    people["STATE"] = "06"
    people["PINCP"] = np.round(people["label"] * 120_000).astype(np.int64) + 101
    people["JWMNP"] = np.round(people["label"] * 160).astype(np.int64) + 1
    people = people.assign(ESR=1, CIT=1 + people.index % 2, DIS=2)
    return people.drop(columns=["truth", "score", "label"])


@pytest.fixture
def parquet_file(tmp_path: Path) -> Callable[[pd.DataFrame, str], str]:
    """Writes a table and returns its path."""

    def write(table: pd.DataFrame, name: str) -> str:
        path = tmp_path / name
        table.to_parquet(path)
        return str(path)

    return write

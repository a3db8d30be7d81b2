"""What a pair is: tables as rows, a configuration for them, and how both are written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Values = dict[str, Any]
"""One row by column."""

DAY = "2026-11-26"


@dataclass(frozen=True)
class Condition:
    """A predicate as SQL, and what it says about a row: true, false, or None where it is null."""

    name: str
    where: str
    holds: Callable[[Values], bool | None]
    columns: tuple[str, ...]
    fails: bool = False


@dataclass(frozen=True)
class Attributes:
    """One attribute table; its rows hold the key too."""

    rows: list[Values]
    types: Mapping[str, pa.DataType]
    on_unmatched: str


@dataclass(frozen=True)
class Pair:
    """Tables and configuration.

    Parameters
    ----------
    seed : int
    key : list of str
    scored : list of dict
    types : mapping of str to DataType
        Of the columns of the scored table.
    format : str
    attributes : list of Attributes
    conditions : list of Condition
    config : dict
        With paths relative to the pair's folder: see :meth:`write`.
    odd : list of str
        What was done on purpose that may be refused, for whoever reads of a failure.
    files : int
    """

    seed: int
    key: list[str]
    scored: list[Values]
    types: Mapping[str, pa.DataType]
    attributes: list[Attributes]
    conditions: list[Condition]
    config: dict[str, Any]
    folders: list[str]
    odd: list[str] = field(default_factory=list)
    files: int = 1

    def write(self, root: Path) -> Path:
        """Write the tables and the configuration below ``root``; returns the configuration's path."""
        rng = Random(self.seed)
        config = json.loads(json.dumps(self.config))
        places = [root / "in" / name for name in self.folders]
        config["scored"]["path"] = str(places[0])
        for section, place in zip(config["attributes"], places[1:], strict=True):
            section["path"] = str(place)
        for section in ("output", "model", "report"):
            if section in config:
                config[section]["path"] = str(root / "out" / config[section]["path"])
        _write(places[0], self.scored, self.types, self.files, rng)
        for place, table in zip(places[1:], self.attributes, strict=True):
            _write(place, table.rows, table.types, rng.randint(1, 3), rng)
        file = root / "run.yaml"
        file.write_text(json.dumps(config, indent=1), encoding="utf-8")  # JSON is YAML
        return file


def _write(
    folder: Path, rows: Sequence[Values], types: Mapping[str, pa.DataType], files: int, rng: Random
) -> None:
    folder.mkdir(parents=True)
    parts: list[list[Values]] = [[] for _ in range(files)]
    for row in rows:
        rng.choice(parts).append(row)
    for i, part in enumerate(parts):
        columns = {name: pa.array([row[name] for row in part], kind) for name, kind in types.items()}
        table = pa.table(list(columns.values()), names=list(columns))
        pq.write_table(table, folder / f"part-{i}.parquet")

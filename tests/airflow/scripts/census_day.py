"""A day's table from census records, by the project's Python: `census_day.py RECORDS FOLDER DAY`.

The score is the share of well-paid people with the same schooling: right for each level of schooling, and
wrong for women and men, the young and the old.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

KEY = ["SERIALNO", "SPORDER"]


def main(records: str, folder: str, day: str) -> None:
    people = pd.read_parquet(records)
    people = people[(people["AGEP"] > 16) & (people["WKHP"] > 0)].reset_index(drop=True)
    people["label"] = (people["PINCP"] > 50_000).astype(float)
    people["score"] = people.groupby("SCHL")["label"].transform("mean")
    for name, columns in (
        (f"scored/ds={day}", [*KEY, "score", "label"]),
        ("attributes", [*KEY, "SEX", "AGEP", "SCHL"]),
    ):
        place = Path(folder) / name
        place.mkdir(parents=True)
        people[columns].to_parquet(place / "part-0.parquet", index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])

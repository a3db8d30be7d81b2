"""What the columns of a table are for, guessed from their names and from its first rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pads

from mcspark.config.csv_text import CsvText
from mcspark.core.cells.levels import FloatArray
from mcspark.data.csv_sample import is_csv, sample_csv
from mcspark.data.formats.layout import is_machinery
from mcspark.data.formats.listing import lake_of, list_table
from mcspark.data.formats.names import twins
from mcspark.errors import ContractError
from mcspark.identifiers import check_column
from mcspark.runtime.files.walk import local_entries, walk

SAMPLE = 50_000
"""Rows that are looked at, the first ones."""
MAX_CATEGORIES = 40
"""A column with more categories is no set of groups by value."""
MAX_KEY_COLUMNS = 10
"""So many columns are tried in pairs as a key."""
MAX_BINS = 5
MANY_CODES = 150
"""Whole numbers with more different values may be codes."""

_KEYS = ("id", "key", "uuid", "serialno", "sporder")
_SCORES = ("score", "prob", "proba", "probability", "pred", "prediction", "p_hat", "yhat", "f0")
_LABELS = ("label", "y", "target", "outcome", "truth", "actual")
_WEIGHTS = ("weight", "weights", "w", "wt", "pwgtp", "sample_weight")


@dataclass(frozen=True)
class Sample:
    """The first rows of a table.

    Parameters
    ----------
    path : str
    format : {'parquet', 'csv', 'delta', 'iceberg'}
    rows : DataFrame
    csv : CsvText, optional
        How a CSV is written, where not as the defaults say.
    odd : mapping of str to str
        Columns that were not read, and their types: lists, structs, bytes and the like.
    """

    path: str
    format: Literal["parquet", "csv", "delta", "iceberg"]
    rows: pd.DataFrame
    csv: CsvText | None = None
    odd: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [str(name) for name in self.rows.columns]


@dataclass(frozen=True)
class Roles:
    """Columns of the scored table by what they are for; None where nothing fits."""

    key: tuple[str, ...] | None
    score: str | None
    label: str | None
    weight: str | None


@dataclass(frozen=True)
class GroupGuess:
    """Groups from one attribute column.

    Parameters
    ----------
    column : str
    bins : tuple of float, optional
        Edges; one group a value where there are none.
    why : str
        What was seen, or why the column makes no groups.
    used : bool
    """

    column: str
    why: str
    bins: tuple[float, ...] | None = None
    used: bool = True


def read_sample(path: str) -> Sample:
    """The first rows of a table of Parquet or CSV files on this machine.

    Raises
    ------
    ContractError
        If nothing is there, or it cannot be read.
    """
    place = Path(path.removeprefix("file:"))
    if not place.exists():
        raise ContractError(
            f"{path}: nothing is there; init looks at tables on this machine: give it a small copy"
        )
    kind = lake_of(str(place), local_entries) if place.is_dir() else None
    names = [place.name] if place.is_file() else walk(str(place), local_entries, is_machinery)
    csv = any(is_csv(Path(n)) for n in names) and not any(n.endswith(".parquet") for n in names)
    folder, files = (place.parent if place.is_file() else place), names
    if kind and kind != "hudi":  # a sample may have rows that the table has no longer
        files = [n for n in names if n.endswith(".parquet")]
    elif place.is_dir():
        files = list(list_table(path, str(place), local_entries, "csv" if csv else "parquet").files)
    options, odd = None, {}
    try:
        if csv:
            rows, options = sample_csv(place, [folder / name for name in files], SAMPLE)
        else:
            whole = pads.dataset(
                [str(folder / name) for name in files], partitioning="hive", partition_base_dir=str(folder)
            )
            if words := twins(whole.schema.names):
                raise ContractError(f"{path}: {words}")
            odd = {f.name: str(f.type) for f in whole.schema if not _is_plain(f.type)}
            plain = [name for name in whole.schema.names if name not in odd]
            rows = whole.head(SAMPLE, columns=plain).to_pandas()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ContractError(f"{path}: cannot be read as Parquet or CSV ({error})") from error
    if rows.empty:
        raise ContractError(f"{path}: no rows; init needs some to look at")
    return Sample(path, kind if kind and kind != "hudi" else "csv" if csv else "parquet", rows, options, odd)


def guess_roles(scored: Sample, others: Sequence[Sample] = ()) -> Roles:
    """What the columns of the scored table are for.

    Parameters
    ----------
    scored : Sample
    others : sequence of Sample
        Attribute tables: the key is in all of them.
    """
    rows = scored.rows
    shares = [name for name in scored.columns if _in_unit_range(rows[name])]
    label = _named(shares, _LABELS)
    score = _named([name for name in shares if name != label], _SCORES)
    if score is None:  # the column in [0, 1] with the most values; a label has few, or gaps
        rest = [n for n in shares if n != label and rows[n].notna().all() and rows[n].nunique() > 2]
        score = max(rest, key=lambda n: rows[n].nunique(), default=None)
    rest = [n for n in scored.columns if n not in (score, label)]
    weight = _named([n for n in rest if _not_negative(rows[n])], _WEIGHTS)
    everywhere = [n for n in rest if n != weight and all(n in other.columns for other in others)]
    return Roles(_key(rows, everywhere), score, label, weight)


def guess_groups(attributes: Sample, roles: Roles) -> list[GroupGuess]:
    """Groups from the columns of an attribute table."""
    taken = {*(roles.key or ()), roles.score, roles.label, roles.weight}
    names = [name for name in attributes.columns if name not in taken]
    odd = [
        GroupGuess(name, f"{kind}: no number, text, date or time", used=False)
        for name, kind in attributes.odd.items()
    ]
    return [*(_group(name, attributes.rows[name]) for name in names), *odd]


def _is_plain(kind: pa.DataType) -> bool:
    """Whether a job can make groups of the values."""
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = (
        types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_string,
        types.is_large_string, types.is_date, types.is_timestamp,
    )  # fmt: skip
    return any(test(kind) for test in tests) and not types.is_float16(kind)


def _unusable(name: str) -> str | None:
    """Why no configuration can name the column."""
    try:
        check_column(name)
    except ValueError as error:
        return str(error)
    return "names that begin with two underscores are kept for working columns" if name[:2] == "__" else None


def _group(name: str, values: pd.Series) -> GroupGuess:
    if why := _unusable(name):
        return GroupGuess(name, why, used=False)
    known = values.dropna()
    if pd.api.types.is_float_dtype(known):
        known = known[np.isfinite(known)]  # what is infinite is in no bin
    distinct, numeric = known.nunique(), pd.api.types.is_numeric_dtype(known)
    # Whole numbers with gaps arrive as floats.
    whole = numeric and bool((known == known.round()).all())
    if distinct < 2:
        return GroupGuess(name, "one value only", used=False)
    if distinct <= MAX_CATEGORIES and (whole or not numeric):
        return GroupGuess(name, f"{distinct} values")
    if not numeric or (whole and distinct >= 0.9 * len(known)):
        return GroupGuess(name, f"{distinct} different values, too many for groups", used=False)
    why = f"numbers from {shortest(known.min())} to {shortest(known.max())}"
    if whole and distinct > MANY_CODES:
        why += "; if they are codes, divide_by: 100 instead of bins may be better"
    edges = _edges(known.to_numpy(dtype=np.float64))
    return GroupGuess(name, why, edges, used=len(edges) > 2)


def _edges(numbers: FloatArray) -> tuple[float, ...]:
    """Round edges between groups of about equal size; the last one is beyond every value."""
    low, high = float(numbers.min()), float(numbers.max())
    step = 10.0 ** np.floor(np.log10((high - low) / MAX_BINS)) if high > low else 1.0
    inner = np.round(np.quantile(numbers, np.arange(1, MAX_BINS) / MAX_BINS) / step) * step
    first, last = np.floor(low / step) * step, (np.floor(high / step) + 1) * step
    edges = np.unique(np.round([first, *inner, last], 12))
    return tuple(float(edge) for edge in edges)


def shortest(number: float) -> str:
    """The shortest text that reads back as the same number."""
    value = float(number)
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _key(rows: pd.DataFrame, names: Sequence[str]) -> tuple[str, ...] | None:
    """The fewest columns that together name each row once, those named like a key first."""
    usable = [n for n in names if rows[n].notna().all() and not pd.api.types.is_float_dtype(rows[n])]
    usable.sort(key=lambda n: not _like(n, _KEYS))
    for size in (1, 2, 3):
        for chosen in combinations(usable[:MAX_KEY_COLUMNS], size):
            if not rows.duplicated(list(chosen)).any():
                return tuple(sorted(chosen, key=list(names).index))
    return None


def _in_unit_range(values: pd.Series) -> bool:
    numbers = pd.to_numeric(values, errors="coerce")
    if values.dtype == bool or numbers.isna().sum() > values.isna().sum() or not numbers.notna().any():
        return False
    return bool(numbers.dropna().between(0, 1).all())


def _not_negative(values: pd.Series) -> bool:
    numbers = pd.to_numeric(values, errors="coerce")
    return bool(numbers.notna().all() and (numbers >= 0).all())


def _named(names: Sequence[str], words: Sequence[str]) -> str | None:
    """The first name that is one of the words, else the first that ends or begins with one."""
    exact = [n for word in words for n in names if n.lower() == word]
    near = [n for n in names if _like(n, words)]
    return next(iter([*exact, *near]), None)


def _like(name: str, words: Sequence[str]) -> bool:
    parts = name.lower().replace("-", "_").replace(" ", "_").split("_")
    return name.lower() in words or parts[0] in words or parts[-1] in words

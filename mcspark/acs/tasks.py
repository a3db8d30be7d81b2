"""The three prediction tasks on ACS data: who is in, what is predicted, from what.

Filters and features are those of the folktables package; the labels are the paper's (appendix "Description
of Datasets").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mcspark.errors import ConfigurationError

INCOME_CEILING = 100_000
"""Incomes from here on are left out of the regression, and the rest divided by it (US dollars)."""

INCOME_CLASS_THRESHOLD = 50_000
"""The classification label says whether the income is above it (US dollars)."""

LONGEST_TRAVEL = 141
"""Minutes to work that count as 1; longer ways are clipped."""

_ADULT = "AGEP > 16 AND PINCP > 100 AND WKHP > 0 AND PWGTP >= 1"
_INCOME_FEATURES = ("AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELSHIPP", "WKHP", "SEX", "RAC1P")
_TRAVEL_FEATURES = (
    "AGEP", "SCHL", "MAR", "SEX", "DIS", "ESP", "MIG", "RELSHIPP", "RAC1P", "PUMA", "STATE", "CIT",
    "OCCP", "JWTRNS", "POWPUMA", "POVPIP",
)  # fmt: skip


@dataclass(frozen=True)
class Task:
    """One prediction task.

    Parameters
    ----------
    name : str
    filter : str
        SQL condition over canonical columns; rows for which it is false or null are not in the task.
    label : str
        SQL expression of the label, a double in [0, 1].
    features : tuple of str
        Canonical columns of the base predictor, those a file may lack included.
    predictor : {"regression", "svm"}
        Linear regression with squared loss, or a linear support vector machine.
    needs : tuple of str
        Columns of ``filter`` and ``label``.
    """

    name: str
    filter: str
    label: str
    features: tuple[str, ...]
    predictor: Literal["regression", "svm"]
    needs: tuple[str, ...]


TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        Task(
            name="income",
            filter=f"{_ADULT} AND PINCP < {INCOME_CEILING}",
            label=f"CAST(PINCP AS DOUBLE) / {INCOME_CEILING}",
            features=_INCOME_FEATURES,
            predictor="regression",
            needs=("AGEP", "PINCP", "WKHP", "PWGTP"),
        ),
        Task(
            name="income_class",
            filter=_ADULT,
            label=f"CAST(PINCP > {INCOME_CLASS_THRESHOLD} AS DOUBLE)",
            features=_INCOME_FEATURES,
            predictor="svm",
            needs=("AGEP", "PINCP", "WKHP", "PWGTP"),
        ),
        Task(
            name="travel",
            filter="AGEP > 16 AND PWGTP >= 1 AND ESR = 1 AND JWMNP IS NOT NULL",
            label=f"GREATEST(0D, LEAST(1D, CAST(JWMNP AS DOUBLE) / {LONGEST_TRAVEL}))",
            features=_TRAVEL_FEATURES,
            predictor="regression",
            needs=("AGEP", "PWGTP", "ESR", "JWMNP"),
        ),
    )
}


def task_named(name: str) -> Task:
    """The task of this name; a :class:`ConfigurationError` names the known ones otherwise."""
    if name not in TASKS:
        raise ConfigurationError(f"unknown task {name!r}: choose one of {', '.join(TASKS)}")
    return TASKS[name]

"""What a saved model says, checked: all that scoring needs, with neither Spark nor a parser of conditions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from mcspark.core.calibrator import SignatureCalibrator, calibrator_from_dict
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.model.stages import MAX_STAGES

SCHEMA_VERSION = 1
RUN_FILE = "run.json"
"""In the folder of a model: which run has made it, and where its metrics are."""

MAX_BYTES = 64 * 1024 * 1024
COLUMNS = ("scoreCol", "predictionCol")

_KEYS = {
    "schema_version", "mcspark", "method", "groups", "group_names", "calibrator", "columns", "trees",
    "sha256",
}  # fmt: skip
_LATER_KEYS = {"fit"}
"""That models of earlier versions lack."""


@dataclass(frozen=True)
class SavedModel:
    """The parts of ``model.json``.

    Attributes
    ----------
    method : str
        Which calibrator it is.
    groups : FittedGroups
    calibrator : SignatureCalibrator
    columns : mapping of str to str
        Names of the columns ``scoreCol`` and ``predictionCol``.
    trees : int
        Number of LightGBM texts beside it.
    fit : Any
        The record of the fit as it stands in the file, unchecked; scoring does not read it.
    """

    method: str
    groups: FittedGroups
    calibrator: SignatureCalibrator
    columns: Mapping[str, str]
    trees: int
    fit: Any


def digest(plain: dict[str, Any]) -> str:
    """SHA-256 of everything else in the file: a changed number is found, not shipped."""
    rest = {key: value for key, value in plain.items() if key != "sha256"}
    return sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def saved_model(plain: Any) -> SavedModel:
    """The parts of a model from its JSON form; whatever it is, nothing but ``ValueError`` is raised.

    Raises
    ------
    ValueError
        If anything is not as this program writes it.
    """
    with value_errors():
        return _saved_model(plain)


@contextmanager
def value_errors() -> Iterator[None]:
    """Let nothing but ``ValueError`` come of a plain form that is not trusted."""
    try:
        yield
    except (TypeError, KeyError, AttributeError, OverflowError, RecursionError, MemoryError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _saved_model(plain: Any) -> SavedModel:
    if not isinstance(plain, dict):
        raise ValueError("it is no JSON object")
    found = plain.get("schema_version")
    if found != SCHEMA_VERSION or isinstance(found, bool):
        raise ValueError(f"its schema version is {found!r}; this program reads version {SCHEMA_VERSION}")
    if set(plain) - _LATER_KEYS != _KEYS:
        raise ValueError(f"its keys differ by {sorted(set(plain) - _LATER_KEYS ^ _KEYS)}")
    if plain["sha256"] != digest(plain):
        raise ValueError("it was changed after it was written")
    groups = FittedGroups.from_dict(plain["groups"])
    _check_conditions(groups)
    if list(groups.names) != plain["group_names"]:
        raise ValueError("the group definitions and the group names disagree")
    trees = plain["trees"]
    if type(trees) is not int or not 0 <= trees <= MAX_STAGES:
        raise ValueError(f"its number of LightGBM texts is {trees!r}")
    calibrator = calibrator_from_dict(plain["method"], plain["calibrator"], groups.names)
    columns = plain["columns"]
    if not isinstance(columns, dict) or set(columns) != set(COLUMNS):
        raise ValueError("its column names are missing")
    if not all(isinstance(v, str) and v for v in columns.values()):
        raise ValueError("its column names are not text")
    return SavedModel(plain["method"], groups, calibrator, columns, trees, plain.get("fit"))


def _check_conditions(groups: FittedGroups) -> None:
    """The checksum says nothing about who wrote the file: no condition is run that is not checked."""
    conditions = [(family.column, family.where) for family in groups.families if family.where is not None]
    if not conditions:
        return
    from mcspark.predicates import check_predicate  # noqa: PLC0415  (models without need no parser)

    for name, where in conditions:
        if check_predicate(where)[0] != where:
            raise ValueError(f"the condition of group {name!r} is not as this program writes it")

"""What a saved model says, checked: all that scoring needs, with neither Spark nor a parser of conditions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

from mcspark.core.calibrator import SignatureCalibrator, calibrator_from_dict
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.model.stages import MAX_STAGES
from mcspark.core.segments import Part, SegmentTable, segmented

SCHEMA_VERSION = 1
RUN_FILE = "run.json"
"""In the folder of a model: which run has made it, and where its metrics are."""

MAX_BYTES = 64 * 1024 * 1024
COLUMNS = ("scoreCol", "predictionCol")

_KEYS = {
    "schema_version", "mcspark", "method", "groups", "group_names", "calibrator", "columns", "trees",
    "sha256",
}  # fmt: skip
_LATER_KEYS = {"fit", "segments", "features"}
"""That models of earlier versions lack; no program without segments or features reads a model with them."""


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
    table : SegmentTable or None
        The segments that have a calibrator of their own; this one is for all other rows then.
    digests : tuple of str
        Of the file of each segment's calibrator.
    parts : tuple of SavedModel
        The segments' calibrators, once :func:`with_parts` has read them.
    """

    method: str
    groups: FittedGroups
    calibrator: SignatureCalibrator
    columns: Mapping[str, str]
    trees: int
    fit: Any
    table: SegmentTable | None = None
    digests: tuple[str, ...] = ()
    parts: tuple[SavedModel, ...] = ()

    @cached_property
    def scoring(self) -> Part:
        """What scores a row of whatever segment, and the groups that this is about."""
        parts = [Part(part.groups, part.calibrator) for part in self.parts]
        return segmented(self.table, Part(self.groups, self.calibrator), parts)


def segment_file(number: int) -> str:
    """Where the calibrator of a segment lies in the folder of its model: values make no names of files."""
    return f"segments/{number:04d}"


def with_parts(model: SavedModel, read: Callable[[str], Any]) -> SavedModel:
    """The same model with its segments' calibrators.

    Parameters
    ----------
    model : SavedModel
    read : callable
        The JSON form of the file of a name in the model's folder.

    Raises
    ------
    ValueError
        If one is not as it was written with this model.
    """
    if model.table is None:
        return model
    parts = []
    for number, wanted in enumerate(model.digests):
        name = f"{segment_file(number)}/model.json"
        plain = read(name)
        try:
            part = saved_model(plain)
            if plain["sha256"] != wanted:
                raise ValueError("it was written with another model")
            if part.table is not None or part.method != model.method:
                raise ValueError("it is no calibrator of a segment")
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        parts.append(part)
    found = replace(model, parts=tuple(parts))
    with value_errors():
        _ = found.scoring  # they fit together
    return found


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
    if of_several(plain):
        raise ValueError(
            "it is of several scores, each of which has a model of its own in a folder below, scores/0000 "
            "and so on: name one of these, or list the scores by scored.scores"
        )
    if set(plain) - _LATER_KEYS != _KEYS:
        raise ValueError(f"its keys differ by {sorted(set(plain) - _LATER_KEYS ^ _KEYS)}")
    if plain["sha256"] != digest(plain):
        raise ValueError("it was changed after it was written")
    groups = FittedGroups.from_dict(plain["groups"])
    if "features" in plain:
        groups = groups.with_features_of(plain["features"])
    _check_conditions(groups)
    if list(groups.names) != plain["group_names"]:
        raise ValueError("the group definitions and the group names disagree")
    trees = plain["trees"]
    if type(trees) is not int or not 0 <= trees <= MAX_STAGES:
        raise ValueError(f"its number of LightGBM texts is {trees!r}")
    calibrator = calibrator_from_dict(plain["method"], plain["calibrator"], groups.learned_names)
    if groups.features and plain["method"] != "trees":
        raise ValueError("trees alone learn from columns")
    columns = plain["columns"]
    if not isinstance(columns, dict) or set(columns) != set(COLUMNS):
        raise ValueError("its column names are missing")
    if not all(isinstance(v, str) and v for v in columns.values()):
        raise ValueError("its column names are not text")
    table, digests = _segments(plain.get("segments"))
    if groups.features and table is not None:
        raise ValueError("a model with segments does not learn from columns")
    return SavedModel(plain["method"], groups, calibrator, columns, trees, plain.get("fit"), table, digests)


def _segments(plain: Any) -> tuple[SegmentTable | None, tuple[str, ...]]:
    if plain is None:
        return None, ()
    if not isinstance(plain, dict) or set(plain) != {"table", "sha256"}:
        raise ValueError("its segments must have exactly the keys table and sha256")
    table, digests = SegmentTable.from_dict(plain["table"]), plain["sha256"]
    if not isinstance(digests, list) or not all(isinstance(found, str) for found in digests):
        raise ValueError("the checksums of its segments are no list of texts")
    if len(digests) != len(table):
        raise ValueError(f"it has {len(table)} segments and {len(digests)} checksums of them")
    return table, tuple(digests)


def of_several(plain: Any) -> bool:
    """Whether it claims to be the file of several scores, see :mod:`mcspark.core.saved_scores`."""
    return isinstance(plain, dict) and "scores" in plain and "calibrator" not in plain


def _check_conditions(groups: FittedGroups) -> None:
    """The checksum says nothing about who wrote the file: no condition is run that is not checked."""
    conditions = [(family.column, family.where) for family in groups.signed if family.where is not None]
    if not conditions:
        return
    from mcspark.predicates import check_predicate  # noqa: PLC0415  (models without need no parser)

    for name, where in conditions:
        if check_predicate(where)[0] != where:
            raise ValueError(f"the condition of group {name!r} is not as this program writes it")

"""The folder of several scores' calibrators: which scores they are of, in a file of its own, ``model.json``.

Each calibrator lies in a folder below, as a model by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcspark.core.saved import SCHEMA_VERSION, digest, value_errors
from mcspark.identifiers import folded

_KEYS = {"schema_version", "mcspark", "scores", "classes", "sha256"}


def score_folder(number: int) -> str:
    """Where the calibrator of a score lies in the folder of its model: columns make no names of files."""
    return f"scores/{number:04d}"


@dataclass(frozen=True)
class SavedScores:
    """What ``model.json`` of several scores says.

    Parameters
    ----------
    digests : mapping of str to str
        Of the file of each score's calibrator, by the score, in their order.
    classes : mapping of str to str, optional
        The score of each class, where they are those of classes.
    projected : bool
        Whether calibrated scores of classes are made to sum to 1.
    """

    digests: Mapping[str, str]
    classes: Mapping[str, str] | None = None
    projected: bool = False

    def to_dict(self, version: str) -> dict[str, Any]:
        """Plain JSON form, with its checksum."""
        scores = [{"score": name, "sha256": found} for name, found in self.digests.items()]
        classes = None
        if self.classes is not None:
            classes = {"scores": dict(self.classes), "projected": self.projected}
        plain = {"schema_version": SCHEMA_VERSION, "mcspark": version, "scores": scores, "classes": classes}
        return {**plain, "sha256": digest(plain)}

    @classmethod
    def from_dict(cls, plain: Any) -> SavedScores:
        """Inverse of :meth:`to_dict`; the input is untrusted.

        Raises
        ------
        ValueError
            If anything is not as this program writes it.
        """
        with value_errors():
            if not isinstance(plain, dict) or set(plain) != _KEYS:
                raise ValueError("it is not of several scores")
            if plain["schema_version"] != SCHEMA_VERSION or isinstance(plain["schema_version"], bool):
                raise ValueError(f"its schema version is {plain['schema_version']!r}")
            if plain["sha256"] != digest(plain):
                raise ValueError("it was changed after it was written")
            digests = _digests(plain["scores"])
            classes, projected = _classes(plain["classes"], digests)
            return cls(digests, classes, projected)


def _digests(scores: Sequence[Any]) -> dict[str, str]:
    if not isinstance(scores, list) or not scores:
        raise ValueError("it names no score")
    for one in scores:
        if not isinstance(one, dict) or set(one) != {"score", "sha256"}:
            raise ValueError("a score must have exactly the keys score and sha256")
        if not all(isinstance(value, str) and value for value in one.values()):
            raise ValueError("the name or the checksum of a score is no text")
    found = {one["score"]: one["sha256"] for one in scores}
    if len({folded(name) for name in found}) < len(scores):
        raise ValueError("it names a score twice")
    return found


def _classes(plain: Any, scores: Mapping[str, str]) -> tuple[Mapping[str, str] | None, bool]:
    if plain is None:
        return None, False
    if not isinstance(plain, dict) or set(plain) != {"scores", "projected"}:
        raise ValueError("its classes must have exactly the keys scores and projected")
    found, projected = plain["scores"], plain["projected"]
    if not isinstance(found, dict) or not isinstance(projected, bool):
        raise ValueError("its classes are not as they are written")
    if len(found) < 2 or sorted(map(str, found.values())) != sorted(scores):
        raise ValueError("its classes are not those of its scores")
    return found, projected

"""Calibrators of several scores of the same rows, in one folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from mcspark.core.saved import MAX_BYTES, of_several
from mcspark.core.saved_scores import SavedScores, score_folder
from mcspark.errors import ContractError
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.ml.persistence import own_version
from mcspark.runtime.files.files import Files
from mcspark.runtime.files.untrusted import read_json


@dataclass(frozen=True)
class ScoreModels:
    """Calibrators by the score.

    Parameters
    ----------
    models : mapping of str to MulticalibratorModel
        For the same groups, for they have learned from the same rows.
    classes : mapping of str to str, optional
        The score of each class, where they are those of classes.
    projected : bool
        Whether calibrated scores of classes are made to sum to 1.
    """

    models: Mapping[str, MulticalibratorModel]
    classes: Mapping[str, str] | None = None
    projected: bool = False

    def __post_init__(self) -> None:
        groups = [model.fitted for model in self.models.values()]
        if any(other != groups[0] for other in groups) or any(m.table for m in self.models.values()):
            raise ValueError("the calibrators of the scores are not for the same groups")

    def write_to(self, folder: str) -> None:
        """Write the files to a new folder, as they stand; for callers that publish it."""
        files = Files(SparkSession.active(), folder)
        digests = {}
        for number, (name, model) in enumerate(self.models.items()):
            place = f"{folder}/{score_folder(number)}"
            model.write().write_to(place)
            digests[name] = _digest(files, place)
        plain = SavedScores(digests, self.classes, self.projected).to_dict(own_version())
        files.write_text(f"{folder}/model.json", json.dumps(plain))

    @classmethod
    def load(cls, path: str) -> ScoreModels:
        """Read the folder.

        Raises
        ------
        ContractError
            If there is none, or a file of it is truncated, edited, too large, or of another model.
        """
        files = Files(SparkSession.active(), path)
        try:
            plain = read_json(files.read_text(f"{path}/model.json", limit=MAX_BYTES))
        except (OSError, ValueError) as error:
            raise ContractError(
                f"{path}/model.json: no readable model ({error}); write it again with calibrate"
            ) from error
        if not of_several(plain):
            raise ContractError(
                f"{path}: holds the calibrator of one score, and several are named; name it by "
                "scored.score, or calibrate all of them"
            )
        try:
            models = {}
            saved = SavedScores.from_dict(plain)
            for number, (name, wanted) in enumerate(saved.digests.items()):
                place = f"{path}/{score_folder(number)}"
                models[name] = MulticalibratorModel.load(place)
                if _digest(files, place) != wanted:
                    raise ValueError(f"{score_folder(number)} was written with another model")
            return cls(models, saved.classes, saved.projected)
        except ValueError as error:
            raise ContractError(f"{path}/model.json: not a model of this program ({error})") from error


def _digest(files: Files, folder: str) -> str:
    """The checksum that a calibrator's file holds; :meth:`MulticalibratorModel.load` has compared it."""
    return str(read_json(files.read_text(f"{folder}/model.json", limit=MAX_BYTES))["sha256"])

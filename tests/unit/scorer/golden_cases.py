"""The golden cases as saved models with rows and expected scores."""

from __future__ import annotations

import json

from make import FOLDER

from mcspark.core.cells.groups import FittedGroups
from mcspark.core.model.stages import Stages
from mcspark.core.saved import SavedModel


def golden(name: str) -> tuple[SavedModel, list[dict]]:
    found = json.loads((FOLDER / f"{name}.json").read_text())
    plain = found["model"]
    families = {"families": plain["families"], "pairs": plain["intersections"], "dropped": []}
    stages = [{"link": s.pop("link"), "trees": 0, "form": s} for s in plain["stages"]]
    stages = Stages.from_dict({"schema": 1, "groups": plain["groups"], "stages": stages})
    columns = {"scoreCol": plain["score"], "predictionCol": "calibrated_score"}
    return SavedModel("trees", FittedGroups.from_dict(families), stages, columns, 0, None), found["cases"]

"""A calibrator as one JSON object that any program can apply; its schema is in docs/use/export.md."""

from __future__ import annotations

from typing import Any

from mcspark.core.model.stages import Stages
from mcspark.core.saved import SavedModel, segment_file
from mcspark.errors import ConfigurationError

FORMAT, VERSION = "mcspark-calibrator", 1
_DEFINITIONS = ("bins", "divide_by", "where")


def additive(model: SavedModel) -> Stages:
    """The stages of a model; a ``ConfigurationError`` if it has segments, or no trees."""
    if model.table is not None:
        raise ConfigurationError(
            f"a model with calibrators for {len(model.table)} segments cannot be exported as one; score with "
            "`mcspark score-local` or `mcspark score`, or export the folder of one segment, such as "
            f"{segment_file(0)} in the model's, for {model.table.names[0]}"
        )
    if isinstance(model.calibrator, Stages):
        return model.calibrator
    raise ConfigurationError(
        f"a calibrator of the method {model.method!r} cannot be exported; score with "
        "`mcspark score-local` or `mcspark score`, or fit one with calibrator.method: trees"
    )


def to_plain(model: SavedModel) -> dict[str, Any]:
    """The JSON form.

    Raises
    ------
    ConfigurationError
        If the calibrator is not made of trees.
    """
    stages = additive(model)
    families = []
    groups = model.groups.learned
    for family in groups.families:
        cut = {k: getattr(family, k) for k in _DEFINITIONS if getattr(family, k) is not None}
        cut = {k: list(v) if isinstance(v, tuple) else v for k, v in cut.items()}
        known = {
            "kind": family.kind,
            "column": family.column,
            "categories": list(family.categories),
            "columns": list(family.columns),
        }
        families.append({**known, **cut})
    return {
        "format": FORMAT,
        "version": VERSION,
        "score": model.columns["scoreCol"],
        "families": families,
        "intersections": [list(pair) for pair in groups.pairs],
        "groups": list(groups.names),
        "stages": [{"link": stage.link, **stage.form.to_dict()} for stage in stages.stages],
    }

"""What does not go together with features."""

from __future__ import annotations

from collections.abc import Iterator

from mcspark.config.models import Config
from mcspark.config.problems import Problem
from mcspark.identifiers import folded


def feature_problems(config: Config) -> Iterator[Problem]:
    """What does not go together of ``features`` and the other sections."""
    features, calibrator, scored = config.features, config.calibrator, config.scored
    if features is None:
        return
    if calibrator.method != "trees":
        what = "does not learn from columns, trees alone do; write trees, or leave the section features out"
        yield Problem(("calibrator", "method"), what, calibrator.method)
    if calibrator.training == "rows":
        what = "does not learn from columns yet; write cells, or leave the section features out"
        yield Problem(("calibrator", "training"), what, "rows")
    if calibrator.engine == "synapseml":
        what = "does not learn from columns; write auto or lightgbm, or leave the section features out"
        yield Problem(("calibrator", "engine"), what, "synapseml")
    for other, place in (("kept cells", "cells"), ("segments", "segments")):
        if getattr(config, place) is not None:
            what = f"does not go with {other} yet; leave one of the sections out"
            yield Problem(("features",), what)
    if scored.several:
        what = "does not go with features yet; name one score by score, or leave features out"
        yield Problem(("scored", "classes" if scored.classes else "scores"), what)
    roles = {folded(name): "is part of the key" for name in scored.key}
    roles |= {folded(name): f"is the {role}" for role, name in _roles(config).items() if name}
    for i, feature in enumerate(features.columns):
        if role := roles.get(folded(feature.column)):
            what = f"{role}; name a column that is known of every row to score, and says what it is like"
            yield Problem(("features", "columns", str(i), "column"), what, feature.column)


def _roles(config: Config) -> dict[str, str | None]:
    return {"score": config.scored.score, "label": config.scored.label}

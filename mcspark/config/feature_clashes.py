"""What does not go together with features."""

from __future__ import annotations

from collections.abc import Iterator

from mcspark.config.models import Config
from mcspark.config.problems import Problem
from mcspark.identifiers import folded


def feature_problems(config: Config, *, compares: bool = False) -> Iterator[Problem]:
    """What does not go with ``features``: of the other sections, or that the job ``compares`` methods."""
    features, calibrator, scored = config.features, config.calibrator, config.scored
    if features is None:
        return
    if compares:
        yield Problem(("features",), "a comparison does not learn from columns yet; leave the section out")
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
    roles = {folded(name): "is part of the key" for name in scored.key}
    roles |= {
        folded(name): "is the score" if not scored.several else "is a score" for name in scored.all_scores
    }
    roles |= {folded(scored.label): "is the label"} if scored.label else {}
    for i, feature in enumerate(features.columns):
        if role := roles.get(folded(feature.column)):
            what = f"{role}; name a column that is known of every row to score, and says what it is like"
            yield Problem(("features", "columns", str(i), "column"), what, feature.column)

"""What does not go together with segments."""

from __future__ import annotations

from collections.abc import Iterator

from mcspark.config.models import Config
from mcspark.config.problems import Problem
from mcspark.identifiers import folded


def segment_problems(config: Config) -> Iterator[Problem]:
    """What does not go together of ``segments`` and the other sections."""
    segments, calibrator, scored = config.segments, config.calibrator, config.scored
    if segments is None:
        return
    if calibrator.method != "trees":
        what = "learns none by segment, trees alone do; write trees, or leave the section segments out"
        yield Problem(("calibrator", "method"), what, calibrator.method)
    if calibrator.training == "rows":
        what = "trains on rows, and segments on their cells; write cells, or leave the section segments out"
        yield Problem(("calibrator", "training"), what, "rows")
    if calibrator.engine == "synapseml":
        what = "trains one ensemble at a time in the cluster; segments are many: write lightgbm or auto"
        yield Problem(("calibrator", "engine"), what, "synapseml")
    if config.cells is not None:
        what = "does not go with kept cells, which are of all rows together; leave one of the sections out"
        yield Problem(("segments",), what)
    roles = [
        *(("score", name) for name in scored.all_scores),
        ("label", scored.label),
        ("weight", scored.weight),
    ]
    for name in segments.by:
        for role, taken in roles:
            if taken is not None and folded(name) == folded(taken):
                yield Problem(("segments", "by"), f"names the {role}; name columns that rows share", name)

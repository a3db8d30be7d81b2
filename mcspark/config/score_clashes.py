"""What does not go together with several scores."""

from __future__ import annotations

from collections.abc import Iterator

from mcspark.config.models import Config
from mcspark.config.problems import Place, Problem


def score_problems(config: Config, *, compares: bool = False) -> Iterator[Problem]:
    """What does not go together of ``scored.scores`` or ``scored.classes`` and the other sections.

    Parameters
    ----------
    config : Config
    compares : bool
        Whether the job compares methods.
    """
    for i, task in enumerate(config.compare.tasks):
        if task.scored.several:
            yield Problem(("compare", "tasks", str(i), "scored", task.scored.scores_key), _ONE_TASK)
    if not config.scored.several:
        return
    place: Place = ("scored", config.scored.scores_key)
    if compares:
        yield Problem(place, _ONE_TASK)
    others = {
        "segments": config.segments is not None,
        "cells": config.cells is not None,
        "drift.against": config.drift.against is not None,
        "labels": config.labels is not None and config.scored.classes is not None,
    }
    for name, given in others.items():
        if given:
            what = f"does not go with {name} yet; name one score by score, or leave {name} out"
            yield Problem(place, what)


_ONE_TASK = "does not go with a comparison, which is of one score; name it by score, one task each"

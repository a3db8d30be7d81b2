"""What does not go together with several scores."""

from __future__ import annotations

from collections.abc import Iterator

from mcspark.config.models import Config
from mcspark.config.problems import Problem

_PLACE = ("scored", "scores")


def score_problems(config: Config, *, compares: bool = False) -> Iterator[Problem]:
    """What does not go together of ``scored.scores`` and the other sections.

    Parameters
    ----------
    config : Config
    compares : bool
        Whether the job compares methods.
    """
    for i, task in enumerate(config.compare.tasks):
        if task.scored.scores:
            yield Problem(("compare", "tasks", str(i), *_PLACE), _ONE_TASK)
    if config.scored.scores is None:
        return
    if compares:
        yield Problem(_PLACE, _ONE_TASK)
    others = {
        "segments": config.segments is not None,
        "cells": config.cells is not None,
        "drift.against": config.drift.against is not None,
    }
    for name, given in others.items():
        if given:
            yield Problem(
                _PLACE, f"does not go with {name} yet; name one score by score, or leave {name} out"
            )


_ONE_TASK = "does not go with a comparison, which is of one score; name it by score, one task each"

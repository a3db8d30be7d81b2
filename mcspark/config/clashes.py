"""What a job that writes the output must not write over."""

from __future__ import annotations

import os.path
import re
from pathlib import Path

from mcspark.config.models import Config
from mcspark.config.problems import Problem

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")


def clashes(config: Config, *, adds_scores: bool) -> list[Problem]:
    """The places where the output, the model and the report would meet each other or an input.

    Paths are compared as text: links and the file system's own names for one folder are not followed.

    Parameters
    ----------
    config : Config
    adds_scores : bool
        Whether the job writes calibrated scores; an audit does not, and may be about such scores.
    """
    problems = []
    reads = {("scored", "path"): config.scored.path} | {
        ("attributes", str(i), "path"): table.path for i, table in enumerate(config.attributes)
    }
    writes = {
        (name, "path"): section.path
        for name, section in (("output", config.output), ("model", config.model), ("report", config.report))
        if section is not None
    }
    done = dict(reads)
    for place, path in writes.items():
        for other, taken in done.items():
            if path and taken and _meet(path, taken):
                problems.append(
                    Problem(place, f"lies in or around {'.'.join(other)}; choose a folder of its own", path)
                )
        done[place] = path
    if config.output is not None and config.output.table and config.output.table == config.scored.table:
        problems.append(Problem(("output", "table"), "is scored.table; choose another", config.output.table))
    if adds_scores and config.scored.score.casefold() == "calibrated_score":
        what = "is a column that the output adds; rename it in the scored table"
        problems.append(Problem(("scored", "score"), what, config.scored.score))
    return problems


def _meet(one: str, other: str) -> bool:
    first, second = _parts(one), _parts(other)
    common = min(len(first), len(second))
    return first[:common] == second[:common]


def _parts(path: str) -> list[str]:
    match = _SCHEME.match(path)
    if match is None or match[1].lower() == "file":
        local = path if match is None else "/" + path[match.end() :]
        return ["file", *os.path.normpath(Path(local).absolute()).strip("/").split("/")]
    return [match[1].lower(), *os.path.normpath(path[match.end() :]).split("/")]

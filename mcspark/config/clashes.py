"""What a job must not write over: its inputs, its configuration, and what it writes itself."""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcspark.config.models import Config
from mcspark.config.problems import Place, Problem
from mcspark.config.tables import ADDED_COLUMNS, ScoredTable
from mcspark.identifiers import folded

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")

_SUFFIXES = ("", "_candidate", "_rejected", "_metrics", "_metrics_by_score")

REFUSED = "refused"
"""Behind the names of what the gate has refused."""


@dataclass(frozen=True)
class _Writes:
    """One key of the configuration, and all paths that are written because of it, its own one first."""

    place: Place
    paths: Sequence[str]


def refused_place(path: str) -> str:
    """Where a refused model or report goes: ``report.html`` becomes ``report_refused.html``."""
    stem = path.rstrip("/").removesuffix(".html")
    return f"{stem}_{REFUSED}{'.html' if path.endswith('.html') else ''}"


def metrics_table(*, by_score: bool) -> str:
    """What follows the name of an output in that of its metrics; several scores have a table of their own."""
    return "metrics_by_score" if by_score else "metrics"


def manifests_of(output: str) -> str:
    """Name of the folder of manifests beside an output of this name.

    Spark takes a name with ``=`` for a partition even if it begins with ``_``, and would refuse the table.
    """
    return f"_{output.replace('=', '-')}_manifests"


def page_of_score(page: str, number: int) -> str:
    """Where the report of one of several scores lies: names of columns make no names of files."""
    return f"{page.removesuffix('.html')}_{number:04d}.html"


def pages_of(scored: ScoredTable) -> int:
    """Reports of single scores: one each of several, and of classes one of the class that is named."""
    return len(scored.all_scores) + (scored.classes is not None) if scored.several else 0


def card_of(page: str) -> str:
    """Where the model card of a report's page lies."""
    return f"{page.removesuffix('.html')}.md"


def clashes(config: Config, *, adds_scores: bool, file: str | None = None) -> list[Problem]:
    """The places where the output, the model and the report would meet each other or an input.

    Local paths are compared after their links have been followed.

    Parameters
    ----------
    config : Config
    adds_scores : bool
        Whether the job writes calibrated scores; an audit does not, and may be about such scores, or about a
        candidate.
    file : str, optional
        The file of the configuration.
    """
    problems = []
    taken = {
        **{f"{place}.path": [table.path] for place, table in config.inputs.items()},
        "the configuration file": [file],
    }
    for writes in _written(config, adds_scores=adds_scores):
        for other, paths in taken.items():
            if problem := _problem(writes, other, [path for path in paths if path]):
                problems.append(problem)
        taken[".".join(writes.place)] = list(writes.paths)
    problems += _same_tables(config)
    return problems + (_added_twice(config.scored) if adds_scores else [])


def _added_twice(scored: ScoredTable) -> list[Problem]:
    """Columns that stand in the scored table, and that the output adds."""
    added = [folded(name) for name in (*scored.added, *ADDED_COLUMNS[1:])]
    what = "is a column that the output adds; rename it in the scored table"
    place = ("scored", scored.scores_key)
    problems = [Problem(place, what, name) for name in scored.all_scores if folded(name) in added]
    if not scored.several:
        return problems  # its name is kept from all others
    others = [name for name in (*scored.key, scored.label, scored.weight) if name]
    return problems + [
        Problem(place, f"{name} is a column that the output adds; rename it in the scored table", name)
        for name in others
        if folded(name) in added
    ]


def _written(config: Config, *, adds_scores: bool) -> list[_Writes]:
    """What the job may write, whatever comes of it."""
    found = []
    if config.output is not None and config.output.path:
        path = config.output.path.rstrip("/")
        kinds = ("", "_candidate", f"_{REFUSED}") if adds_scores else ("",)
        metrics = f"_{metrics_table(by_score=config.scored.several)}"
        tables = ("", "_rejected", metrics, *_segments(config)) if adds_scores else ("", metrics)
        parent, slash, leaf = path.rpartition("/")
        manifests = [f"{parent}{slash}{manifests_of(leaf + kind)}" for kind in kinds]
        found.append(
            _Writes(("output", "path"), [*(f"{path}{k}{t}" for k in kinds for t in tables), *manifests])
        )
    if config.model is not None:
        found.append(_Writes(("model", "path"), [config.model.path, refused_place(config.model.path)]))
    if config.report is not None:
        pages = [config.report.path, refused_place(config.report.path)]
        pages += [page_of_score(p, i) for p in pages for i in range(pages_of(config.scored))]
        found.append(_Writes(("report", "path"), [*pages, *map(card_of, pages)]))
    if config.cells is not None and adds_scores:
        found.append(_Writes(("cells", "path"), [config.cells.path]))
    return found


def _problem(writes: _Writes, other: str, taken: Sequence[str]) -> Problem | None:
    own = writes.paths[0]
    for path in writes.paths:
        if any(_meet(path, one) for one in taken):
            also = "" if path == own else f"has {path} written beside it, which "
            return Problem(writes.place, f"{also}lies in or around {other}; choose a folder of its own", own)
    return None


def _same_tables(config: Config) -> list[Problem]:
    """An output by name that is an input, or has its companion there."""
    if config.output is None or not config.output.table:
        return []
    name = config.output.table
    written = {f"{name}{suffix}".casefold() for suffix in _SUFFIXES + _segments(config)}
    return [
        Problem(("output", "table"), f"is {place}.table, or its companion is; choose another", name)
        for place, read in config.inputs.items()
        if read.table and read.table.casefold() in written
    ]


def _segments(config: Config) -> tuple[str, ...]:
    return ("_segments",) if config.segments is not None else ()


def _meet(one: str, other: str) -> bool:
    first, second = _parts(one), _parts(other)
    common = min(len(first), len(second))
    return first[:common] == second[:common]


def _parts(path: str) -> list[str]:
    match = _SCHEME.match(path)
    if match is None or match[1].lower() == "file":
        local = path if match is None else "/" + path[match.end() :]
        return ["file", *os.path.realpath(Path(local)).strip("/").split("/")]
    return [match[1].lower(), *os.path.normpath(path[match.end() :]).split("/")]

"""Names that people read in place of the ids of groups, in all that a report is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from mcspark.config import Groups
from mcspark.core.cells.definitions import defined
from mcspark.core.cells.groups import Family
from mcspark.core.cells.readable import readable_names
from mcspark.report.facts import RunFacts


def families_of(configuration: Any) -> tuple[Family, ...]:
    """The groups of a run, with titles and labels; none where its configuration is not to be had any more."""
    try:
        return defined(Groups.model_validate(configuration["groups"]))
    except (TypeError, KeyError, ValueError):  # pydantic's error is a ValueError
        return ()


def with_names(facts: RunFacts, families: Sequence[Family]) -> RunFacts:
    """The same facts, whose groups have the titles and labels of their families."""
    ids = [str(name) for name in facts.metrics["group"].dropna().unique()]
    ids += [str(name) for name in facts.curves["group"].dropna().unique()] if facts.curves is not None else []
    ids += [name for name, _ in facts.dropped]
    ids += [str(n) for n in facts.segments["worst_group"].dropna()] if facts.segments is not None else []
    names = readable_names(families, dict.fromkeys(ids))
    if all(name == words for name, words in names.items()):
        return facts
    return replace(
        facts,
        metrics=_renamed(facts.metrics, names, "group"),
        curves=None if facts.curves is None else _renamed(facts.curves, names, "group"),
        pairs=None if facts.pairs is None else _renamed(facts.pairs, names, "first", "second"),
        segments=None if facts.segments is None else _renamed(facts.segments, names, "worst_group"),
        dropped=[(names.get(name, name), why) for name, why in facts.dropped],
        summary=_with_drift(facts.summary, names),
        ids={words: name for name, words in names.items() if name != words},
    )


def _renamed(frame: pd.DataFrame, names: Mapping[str, str], *columns: str) -> pd.DataFrame:
    # What is null, such as the group of all rows, stays so.
    return frame.assign(**{c: [names.get(v, v) for v in frame[c].tolist()] for c in columns})


def _with_drift(summary: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    drift = summary.get("drift")
    if not drift:
        return summary
    group = drift.get("share_group")
    return {**summary, "drift": {**drift, "share_group": names.get(group, group)}}

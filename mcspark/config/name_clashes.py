"""Column names of a configuration that would mean two things at once."""

from __future__ import annotations

from collections.abc import Mapping

from mcspark.config.groups import Groups
from mcspark.config.models import Config
from mcspark.config.problems import Place, Problem
from mcspark.config.tables import ADDED_COLUMNS, OF_REJECTED, ScoredTable
from mcspark.identifiers import folded


def name_clashes(config: Config) -> list[Problem]:
    """Columns that would mean two things at once, in whatever capitals they are written.

    A partition's column is a constant in every row that is written, so it is no column of the output or of
    the rejected rows; nor is one of these part of the key. Rows are not chosen by the score, the label or the
    weight. No group is made of the label, which nobody knows of the rows to score.
    """
    problems = []
    if config.output is not None:
        taken = {
            **_roles(config.scored),
            **dict.fromkeys(map(folded, config.scored.key), "is part of the key"),
        }
        added = (*map(folded, config.scored.added), *ADDED_COLUMNS)
        taken |= dict.fromkeys(added, "is a column that the output adds")
        taken |= dict.fromkeys(OF_REJECTED, "is a column of the rejected rows")
        problems += _taken(("output", "partition"), config.output.partition, taken)
    places: list[tuple[Place, ScoredTable, Place, Groups]] = [
        (("scored",), config.scored, ("groups",), config.groups)
    ]
    for i, task in enumerate(config.compare.tasks):
        at: Place = ("compare", "tasks", str(i))
        own = ("groups",) if task.groups is None else (*at, "groups")
        places.append(((*at, "scored"), task.scored, own, task.groups or config.groups))
    for place, scored, of_groups, groups in places:
        what = "names a column of the rejected rows; rename it in the table"
        problems += [Problem((*place, "key"), what, k) for k in scored.key if folded(k) in OF_REJECTED]
        problems += _taken((*place, "partition"), scored.partition, _roles(scored))
        problems += _groups_of_the_label(of_groups, groups, scored.label)
    if config.labels is not None:
        label = {folded(config.labels.label): "is the label"}
        problems += _taken(("labels", "partition"), config.labels.partition, label)
    return problems


def _roles(scored: ScoredTable) -> dict[str, str]:
    roles: dict[str | None, str] = dict.fromkeys(
        scored.all_scores, "is a score" if scored.several else "is the score"
    )
    roles |= {scored.label: "is the label", scored.weight: "is the weight"}
    return {folded(name): role for name, role in roles.items() if name}


def _taken(place: Place, partition: Mapping[str, str] | None, taken: Mapping[str, str]) -> list[Problem]:
    return [
        Problem((*place, name), f"{role}; partition by another column")
        for name in partition or {}
        if (role := taken.get(folded(name)))
    ]


def _groups_of_the_label(place: Place, groups: Groups, label: str | None) -> list[Problem]:
    if label is None:
        return []
    what = "reads the label, which nobody knows of the rows to score; rename one of the two columns"
    columns = {("columns", str(i), "column"): [c.column] for i, c in enumerate(groups.columns)}
    columns |= {("predicates", str(i), "where"): sorted(p.columns) for i, p in enumerate(groups.predicates)}
    return [
        Problem((*place, *key), what, name)
        for key, names in columns.items()
        for name in names
        if folded(name) == folded(label)
    ]

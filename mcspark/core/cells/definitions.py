"""Groups as a configuration defines them, before any row is seen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mcspark.core.cells.groups import Family, Kind
from mcspark.identifiers import folded

if TYPE_CHECKING:
    from mcspark.config import Features, Groups
    from mcspark.config.groups import Cut


def defined(section: Groups) -> tuple[Family, ...]:
    """The families of a section ``groups``, without categories but with titles and labels."""
    from mcspark.predicates import check_predicate  # noqa: PLC0415  (workers need no parsers)

    families = []
    for spec in section.columns:
        words = section.words_of(spec)
        labels = tuple(words.labels.items()) if words.labels else None
        families.append(replace(_of_column(spec, spec.column), title=words.title, labels=labels))
    for predicate in section.predicates:
        where, columns = check_predicate(predicate.where)
        families.append(
            Family("predicate", predicate.name, (1,), where=where, columns=tuple(sorted(columns)))
        )
    return tuple(families)


def learned_from(section: Features, families: tuple[Family, ...]) -> tuple[Family, ...]:
    """The families that trees learn from: those of the groups, and the columns of a section ``features``.

    A column that is cut as for the groups is there already; one that they read, too, is spelt as there.
    """
    cuts = {(f.kind, f.column, f.bins, f.divide_by) for f in families}
    spelt = {folded(name): name for family in families for name in family.columns}
    others = [_of_column(spec, spelt.get(folded(spec.column), spec.column)) for spec in section.columns]
    return (*families, *(f for f in others if (f.kind, f.column, f.bins, f.divide_by) not in cuts))


def _of_column(spec: Cut, name: str) -> Family:
    kind: Kind = "bins" if spec.bins is not None else "divide" if spec.divide_by is not None else "value"
    return Family(kind, name, bins=spec.bins, divide_by=spec.divide_by, columns=(name,))

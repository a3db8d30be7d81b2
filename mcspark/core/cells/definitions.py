"""Groups as a configuration defines them, before any row is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcspark.core.cells.groups import Family, Kind

if TYPE_CHECKING:
    from mcspark.config import Groups


def defined(section: Groups) -> tuple[Family, ...]:
    """The families of a section ``groups``, without categories but with titles and labels."""
    from mcspark.predicates import check_predicate  # noqa: PLC0415  (workers need no parsers)

    families = []
    for spec in section.columns:
        kind: Kind = "bins" if spec.bins is not None else "divide" if spec.divide_by is not None else "value"
        words = section.words_of(spec)
        families.append(
            Family(
                kind,
                spec.column,
                bins=spec.bins,
                divide_by=spec.divide_by,
                columns=(spec.column,),
                title=words.title,
                labels=tuple(words.labels.items()) if words.labels else None,
            )
        )
    for predicate in section.predicates:
        where, columns = check_predicate(predicate.where)
        families.append(
            Family("predicate", predicate.name, (1,), where=where, columns=tuple(sorted(columns)))
        )
    return tuple(families)

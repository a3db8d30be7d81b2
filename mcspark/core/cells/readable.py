"""Names of groups that people read: ``Race: White alone`` for ``RAC1P=1``. The data keep the ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mcspark.core.cells.groups import Family

AND = " & "


def readable_names(families: Sequence[Family], names: Iterable[str]) -> dict[str, str]:
    """What people read for each id of a group; an id that has no words stands for itself.

    Parameters
    ----------
    families : sequence of Family
        With their titles and labels.
    names : iterable of str
        Ids, of intersections too.

    Returns
    -------
    dict
        No two ids have one name: where words are the same, the ids follow them.
    """
    found = {name: _words(families, name) for name in names}
    twice = {words for words, n in Counter(found.values()).items() if n > 1}
    return {name: f"{words} ({name})" if words in twice else words for name, words in found.items()}


def _words(families: Sequence[Family], name: str) -> str:
    parts = name.split(AND)
    for place in range(1, len(parts)):
        pair = [_of_one(families, AND.join(part)) for part in (parts[:place], parts[place:])]
        if None not in pair:
            return AND.join(filter(None, pair))
    return _of_one(families, name) or name


def _of_one(families: Sequence[Family], name: str) -> str | None:
    """The words for a group that is no intersection; None where it is of none of the families."""
    for family in families:
        if family.kind == "predicate":
            if name == family.column:
                return name
        elif name.startswith(stem := family.group_stem):
            value = name.removeprefix(stem)
            if family.title is None and family.labels is None:
                return name
            label = _label(family, value)
            return f"{family.title or family.group_stem.rstrip('=')}: {label or value}"
    return None


def _label(family: Family, value: str) -> str | None:
    labels = dict(family.labels or ())
    if value in labels or family.kind != "bins":
        return labels.get(value)
    return _of_codes(labels, value)


def _of_codes(labels: Mapping[str, str], interval: str) -> str | None:
    """A bin of codes that have labels: the first and the last."""
    low, high = map(float, interval.strip("[)").split(","))
    inside = [int(code) for code in labels if _is_whole(code) and low <= int(code) < high]
    if not inside:
        return None
    ends = [labels[str(code)] for code in (min(inside), max(inside))]
    return ends[0] if len(inside) == 1 else " to ".join(ends)


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii() and str(int(text)) == text

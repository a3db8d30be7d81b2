"""Column names: quoted rightly, compared exactly, and a hint when one is missing."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import Row

from mcspark.identifiers import folded

RENAMED = {"ST": "STATE", "RELP": "RELSHIPP"}
"""Census columns that changed their name between years; told apart by no edit distance."""

_INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad]")


def differing_in_case(names: Iterable[str]) -> list[str]:
    """The names that are equal but for upper and lower case, or equal altogether; sorted."""
    listed = list(names)
    count = Counter(folded(name) for name in listed)
    return sorted(name for name in listed if count[folded(name)] > 1)


def twins(names: Sequence[str]) -> str | None:
    """Words about names that are not told apart; None where all are."""
    repeated = differing_in_case(names)
    again = sorted(name for name, count in Counter(names).items() if count > 1)
    if again:
        return f"columns named more than once: {again}; rename one of each"
    return f"columns that differ only in case: {repeated}; rename one of them" if repeated else None


def difference(name: str, other: str) -> str | None:
    """What sets apart two names that look alike: blanks, or the code points of one spelling."""
    if name == other:
        return None
    if unicodedata.normalize("NFC", name) == unicodedata.normalize("NFC", other):
        return "the same letters in other Unicode characters (composed against accents apart)"
    if "".join(name.split()) == "".join(other.split()):
        return "other blanks"
    visible = [unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).strip() for text in (name, other)]
    return "characters that cannot be seen" if visible[0] == visible[1] else None


def close_to(name: str, present: Sequence[str]) -> list[str]:
    """Up to three present names that may be meant by one that is missing."""
    renamed = [new for old, new in RENAMED.items() if old == name]
    renamed += [old for old, new in RENAMED.items() if new == name]
    by_lower = {other.lower(): other for other in present}
    spelled = difflib.get_close_matches(name.lower(), list(by_lower), n=3, cutoff=0.6)
    found = [other for other in renamed if other in present] + [by_lower[lower] for lower in spelled]
    return list(dict.fromkeys(found))[:3]


def shown(key: Row) -> str:
    """A key as messages show it."""
    return "(" + ", ".join(f"{name}={value!r}" for name, value in key.asDict().items()) + ")"


def keys_told(scored: Sequence[Row], known: Sequence[Row]) -> str:
    """A few keys of the scored table and of another one, and how their spellings differ."""
    reported = f"keys are {_listed(scored)} in the scored table and {_listed(known)} here"
    return reported + _difference_of_keys(scored, known)


def _listed(keys: Sequence[Row]) -> str:
    return ", ".join(map(shown, keys)) or "none"


_SPELLINGS: dict[str, Callable[[str], str]] = {
    "one side ends in .0": lambda text: text.removesuffix(".0"),
    "one side has leading zeros": lambda text: text.lstrip("0"),
    "one side has blanks around": str.strip,
    "upper and lower case": str.lower,
}


def _difference_of_keys(scored: Sequence[Row], known: Sequence[Row]) -> str:
    """How the spellings differ, where one of them changes all keys of one side and none of the other."""
    for what, plain in _SPELLINGS.items():
        changed = [
            {any(isinstance(v, str) and plain(v) != v for v in row) for row in side}
            for side in (scored, known)
        ]
        if changed in ([{True}, {False}], [{False}, {True}]):
            return f" ({what})"
    return ""

"""The code of a row in a family as an expression of SQL: numbers are found by bisection, words by a join."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mcspark.core.cells.decimals import divided
from mcspark.core.cells.groups import Family
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.model.additive import BoolArray
from mcspark.errors import ConfigurationError
from mcspark.export.conditions import condition
from mcspark.export.words import SPOKEN, literal, quoted

_LARGEST = float(np.finfo(np.float64).max)


def has_words(family: Family) -> bool:
    """Whether its categories are text."""
    return family.kind == "value" and any(isinstance(category, str) for category in family.categories)


def is_cut(family: Family) -> bool:
    """Whether its categories are ranges of numbers."""
    return family.kind in ("bins", "divide")


def code_of(family: Family, dialect: str, column: str, found: str) -> str:
    """The code: 0 for none of the groups, else the place of the group from 1.

    Parameters
    ----------
    family : Family
    dialect : str
        Where a condition has to mean the same.
    column : str
        The expression with the value; a double for ranges of numbers.
    found : str
        The expression with the code of a word, null for none.
    """
    if family.kind == "predicate":
        return f"CASE WHEN {_condition(family, dialect)} THEN 1 ELSE 0 END"
    if has_words(family):
        return f"COALESCE({found}, 0)"
    if is_cut(family):
        edges, codes = _ranges(family)
        return _cut(column, edges, codes)
    known = sorted((int(category), code) for code, category in enumerate(family.categories, start=1))
    return _chosen(column, known)


def _condition(family: Family, dialect: str) -> str:
    from sqlglot import exp  # noqa: PLC0415

    tree = condition(family, dialect)
    for column in list(tree.find_all(exp.Column)):
        column.set("table", exp.to_identifier("t"))
    return tree.sql(dialect=SPOKEN, identify=True)


def _cut(column: str, edges: Sequence[float], codes: Sequence[int]) -> str:
    """``codes[k]`` with k edges at or below the number; what is none is behind the last edge."""
    if not edges:
        return str(codes[0])
    middle = len(edges) // 2
    below = _cut(column, edges[:middle], codes[: middle + 1])
    above = _cut(column, edges[middle + 1 :], codes[middle + 1 :])
    return f"CASE WHEN {column} < {literal(edges[middle])} THEN {below} ELSE {above} END"


def _chosen(column: str, known: Sequence[tuple[int, int]]) -> str:
    """The code of a whole number, which may be larger than a double holds."""
    if len(known) <= 1:
        return "".join(f"CASE WHEN {column} = {c} THEN {code} ELSE 0 END" for c, code in known) or "0"
    middle = len(known) // 2
    below, above = _chosen(column, known[:middle]), _chosen(column, known[middle:])
    return f"CASE WHEN {column} < {known[middle][0]} THEN {below} ELSE {above} END"


def _ranges(family: Family) -> tuple[list[float], list[int]]:
    """Edges of the groups in increasing order, and the code before, between and behind them."""
    if family.kind == "bins":
        edges = list(family.bins or ())
        low = [edges[int(category)] for category in family.categories]
        high = [edges[int(category) + 1] for category in family.categories]
    else:
        divide_by = float(family.divide_by or 1)
        whole = np.array([float(category) for category in family.categories])
        low = _first(lambda x: _quotient(x, divide_by) >= whole, len(whole)).tolist()
        high = _first(lambda x: _quotient(x, divide_by) > whole, len(whole)).tolist()
    # No number may reach the quotient, as it is none of 64 bits or lies between two doubles.
    code_from = {a: code for code, (a, b) in enumerate(zip(low, high, strict=True), start=1) if a < b}
    used = sorted({edge for a, b in zip(low, high, strict=True) if a < b for edge in (a, b)})
    return used, [0, *(code_from.get(edge, 0) for edge in used)]


def _quotient(number: FloatArray, divide_by: float) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        whole = divided(number, divide_by)
    return np.asarray(np.where(np.isnan(whole), np.copysign(np.inf, number), whole), dtype=np.float64)


def _first(holds: Callable[[FloatArray], BoolArray], size: int) -> FloatArray:
    """By bisection of all doubles, the smallest for which each condition holds; the largest if for none."""
    top = int(np.float64(np.inf).view(np.int64))
    low, high = np.full(size, -top), np.full(size, top)
    while (high - 1 > low).any():
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        enough = holds(_double(middle))
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.minimum(_double(high), _LARGEST)


def _double(place: IntArray) -> FloatArray:
    """Doubles by their places in increasing order, 0 being that of 0."""
    return np.asarray(np.where(place < 0, -1.0, 1.0) * np.abs(place).view(np.float64), dtype=np.float64)


def word_rows(families: Sequence[Family]) -> list[tuple[int, str, int]]:
    """Rows of the table of words: the family, the word and its code.

    Raises
    ------
    ConfigurationError
        If a word cannot be written.
    """
    rows = []
    for i, family in enumerate(families):
        if has_words(family):
            codes = {str(category): code for code, category in enumerate(family.categories, start=1)}
            if no_text := [word for word in (*codes, *family.seen) if "\0" in str(word)]:
                raise ConfigurationError(
                    f"column {family.column!r} has the category {no_text[0]!r}, and SQL has no text with the "
                    "character 0; take it out of the column before the groups are chosen"
                )
            # A join in which every row finds something is faster: what is no group but was seen has 0.
            rows += [
                (i, word, codes.get(word, 0)) for word in dict.fromkeys([*codes, *map(str, family.seen)])
            ]
    return rows


def word_join(i: int, family: Family) -> str:
    """The join that finds the code of a word."""
    return f" LEFT JOIN mcspark_word AS w{i} ON w{i}.family = {i} AND w{i}.word = t.{quoted(family.column)}"

"""A calibrator as an ONNX model in double precision: attributes in, calibrated score out.

The groups of a family exclude each other, and so do the intersections of two families. So a row is one code
in each of these, every curve is one look-up by code and bin, and every pair term one by two codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from mcspark.core.cells.decimals import LARGEST_EXACT, LARGEST_WHOLE, decimal_ratio
from mcspark.core.cells.groups import Family
from mcspark.core.model.stages import LOGIT_EPS, Stage
from mcspark.core.saved import SavedModel
from mcspark.errors import ConfigurationError
from mcspark.export.onnx_nodes import Nodes
from mcspark.export.plain import additive

_CUT = ("bins", "divide")


@dataclass(frozen=True)
class _Codes:
    """A column of codes, 0 for none, and the groups that the codes from 1 stand for."""

    column: str
    groups: tuple[int, ...]


def to_onnx(model: SavedModel) -> bytes:
    """The ONNX file of a calibrator made of trees.

    Parameters
    ----------
    model : SavedModel

    Raises
    ------
    ConfigurationError
        If the library ``onnx`` is not installed, the calibrator is not made of trees, a group has a
        condition, or a column is cut as a number and has categories that are text.
    """
    stages = additive(model).stages
    if find_spec("onnx") is None:
        raise ConfigurationError("an ONNX file needs the library onnx: pip install 'mcspark[onnx]'")
    numbers = _columns_of_numbers(model)
    nodes = Nodes()
    columns = {name: nodes.input(name, name not in numbers) for name in _inputs(model)}
    codes = _codes(nodes, model, columns, numbers)
    given = columns[model.columns["scoreCol"]]
    zero, one = nodes.constant(0.0), nodes.constant(1.0)
    known = nodes("And", nodes("GreaterOrEqual", given, zero), nodes("LessOrEqual", given, one))
    score = nodes("Where", known, given, zero)
    for stage in stages:
        score = _applied(nodes, stage, score, codes)
    score = nodes("Where", known, score, nodes.constant(np.nan))
    description = f"Calibrated scores; groups: {', '.join(model.groups.base_names)}"
    return nodes.model(score, model.columns["predictionCol"], description)


def _inputs(model: SavedModel) -> tuple[str, ...]:
    read = [f.column for f in model.groups.learned.families if f.categories]
    return tuple(dict.fromkeys([model.columns["scoreCol"], *read]))


def _columns_of_numbers(model: SavedModel) -> set[str]:
    """The score, and what is cut; a column of categories alone is text. What ONNX cannot have is refused."""
    families = model.groups.learned.families
    for family in families:
        if family.kind == "predicate":
            raise ConfigurationError(
                f"the condition of group {family.column!r}, {family.where}, cannot be written as ONNX; leave "
                "the group out, or make the condition a column of the attributes"
            )
    numbers = {model.columns["scoreCol"], *(f.column for f in families if f.kind in _CUT)}
    for family in families:
        wrong = [c for c in family.categories if isinstance(c, str) or abs(c) >= LARGEST_EXACT]
        if family.kind == "value" and family.column in numbers and wrong:
            raise ConfigurationError(
                f"column {family.column!r} is a number (it is the score, or is cut by bins or divide_by), "
                f"but has categories that are no doubles, such as {wrong[0]!r}; make them another column"
            )
    return numbers


def _codes(nodes: Nodes, model: SavedModel, columns: dict[str, str], numbers: set[str]) -> list[_Codes]:
    found, first = [], 0
    for family in model.groups.learned.families:
        groups = tuple(range(first, first + len(family.categories)))
        first += len(family.categories)
        if groups:
            found.append(_Codes(_code(nodes, family, columns[family.column], numbers), groups))
    return [*found, *_intersections(nodes, model, found)]


def _code(nodes: Nodes, family: Family, column: str, numbers: set[str]) -> str:
    if family.kind == "bins":
        edges = np.array(family.bins)
        code = np.zeros(2 ** len(edges).bit_length(), dtype=np.int64)
        for place, category in enumerate(family.categories, start=1):
            code[int(category) + 1] = place
        return nodes("Gather", nodes.constant(code), nodes.count_below(column, edges, or_equal=True))
    if family.kind == "value" and family.column not in numbers:
        return nodes.place_of_text(column, [str(c) for c in family.categories])
    value = _divided(nodes, column, float(family.divide_by or 1)) if family.kind == "divide" else column
    return nodes.place_of_number(value, np.array([float(c) for c in family.categories]))


def _divided(nodes: Nodes, column: str, divide_by: float) -> str:
    """As :func:`mcspark.core.cells.groups.divided`: the guess is corrected by the edges beside it."""
    top, bottom = (nodes.constant(x) for x in decimal_ratio(divide_by))
    quotient = nodes("Div", column, nodes.constant(divide_by))
    guess = nodes("Floor", quotient)
    low = nodes("Div", nodes("Mul", guess, top), bottom)
    high = nodes("Div", nodes("Mul", nodes("Add", guess, nodes.constant(1.0)), top), bottom)
    below = nodes("Cast", nodes("Less", column, low), to=11)
    above = nodes("Cast", nodes("GreaterOrEqual", column, high), to=11)
    exact = nodes("Add", nodes("Sub", guess, below), above)
    small = nodes("Less", nodes("Abs", guess), nodes.constant(LARGEST_EXACT))
    whole = nodes("Less", nodes("Abs", quotient), nodes.constant(LARGEST_WHOLE))
    return nodes("Where", whole, nodes("Where", small, exact, guess), nodes.constant(np.nan))


def _intersections(nodes: Nodes, model: SavedModel, families: list[_Codes]) -> list[_Codes]:
    """The intersections of every two families, as the codes of one more."""
    owner = {group: (i, code) for i, f in enumerate(families) for code, group in enumerate(f.groups, start=1)}
    of_two: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    learned = model.groups.learned
    for group, (one, two) in enumerate(learned.pairs, start=len(learned.base_names)):
        (i, a), (j, b) = owner[one], owner[two]
        of_two.setdefault((i, j), []).append((group, a, b))
    found = []
    for (i, j), groups in of_two.items():
        table = np.zeros((len(families[i].groups) + 1, len(families[j].groups) + 1), dtype=np.int64)
        for place, (_, a, b) in enumerate(groups, start=1):
            table[a, b] = place
        code = _by_two(nodes, table, families[i].column, families[j].column)
        found.append(_Codes(code, tuple(group for group, _, _ in groups)))
    return found


def _by_two(nodes: Nodes, table: NDArray[np.generic], row: str, column: str) -> str:
    """Entries of a table, by two columns of places."""
    place = nodes("Add", nodes("Mul", row, nodes.constant(np.int64(table.shape[1]))), column)
    return nodes("Gather", nodes.constant(table.reshape(-1)), place)


def _applied(nodes: Nodes, stage: Stage, score: str, codes: list[_Codes]) -> str:
    form = stage.form
    place = nodes.count_below(score, form.thresholds)
    terms = [nodes("Gather", nodes.constant(form.base + form.constant), place)]
    terms += _pair_terms(nodes, stage, codes)
    for family in codes:
        curves = form.curves[list(family.groups)]
        if curves.any():
            table = np.concatenate([np.zeros((1, form.n_bins)), curves])
            terms.append(_by_two(nodes, table, family.column, place))
    total = nodes.sum(terms)
    one = nodes.constant(1.0)
    if stage.link == "identity":
        return nodes("Min", nodes("Max", nodes("Add", score, total), nodes.constant(0.0)), one)
    inner = nodes("Max", score, nodes.constant(LOGIT_EPS))
    inner = nodes("Min", inner, nodes.constant(1 - LOGIT_EPS))
    odds = nodes("Sub", nodes("Log", inner), nodes("Log", nodes("Sub", one, inner)))
    odds = nodes("Add", odds, total)
    small = nodes("Exp", nodes("Neg", nodes("Abs", odds)))
    top = nodes("Where", nodes("GreaterOrEqual", odds, nodes.constant(0.0)), one, small)
    return nodes("Div", top, nodes("Add", one, small))


def _pair_terms(nodes: Nodes, stage: Stage, codes: list[_Codes]) -> list[str]:
    """One look-up for every two families that have a term; groups of one family are never met together."""
    owner = {group: (i, code) for i, f in enumerate(codes) for code, group in enumerate(f.groups, start=1)}
    tables: dict[tuple[int, int], NDArray[np.float64]] = {}
    form = stage.form
    for (one, two), value in zip(form.pairs.tolist(), form.pair_values.tolist(), strict=True):
        (i, a), (j, b) = owner[one], owner[two]
        if i != j and value:
            shape = (len(codes[i].groups) + 1, len(codes[j].groups) + 1)
            tables.setdefault((i, j), np.zeros(shape))[a, b] += value
    return [_by_two(nodes, t, codes[i].column, codes[j].column) for (i, j), t in tables.items()]

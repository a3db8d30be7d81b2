"""Cells as Arrow tables of integer sums: rows summed up to them, and cells of one key put together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mcspark.core.cells.cells import SUMS
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.errors import McsparkError

PLACE, SPREAD, SEGMENT = "__place", "__spread", "__segment"
"""Columns of a block of cells: role times the number of bins plus bin, a hash of the categories, and, where
cells are told apart by it, the segment."""


def summed(rows: pa.Table, weight: float | FloatArray, weight_sq: float | FloatArray) -> pa.Table:
    """Rows summed up to cells; each term is rounded once, and the sums are exact.

    Parameters
    ----------
    rows : pyarrow.Table
        Score ``f``, label ``y``, weight ``w`` if there is one, and the columns that make a cell.
    weight, weight_sq : float, or ndarray with a number a row
        Units of :class:`FixedPoint`.
    """
    f, y = rows["f"].to_numpy(), rows["y"].to_numpy()
    weighted = "w" in rows.column_names
    w = rows["w"].to_numpy() if weighted else 1.0
    terms = {
        "score": w * f, "label": w * y,
        "score_sq": w * f * f, "label_sq": w * y * y, "score_label": w * f * y,
    }  # fmt: skip
    if weighted:
        terms |= {"weight": w, "weight_sq": w * w}
    units = {name: weight_sq if name == "weight_sq" else weight for name in terms}
    sums = {name: np.rint(term * units[name]).astype(np.int64) for name, term in terms.items()}
    if weighted:  # what weighs anything is not taken for what weighs nothing
        sums["weight"] = np.maximum(sums["weight"], rows["w"].to_numpy() > 0)
    plain = (PLACE, SPREAD, SEGMENT)
    keys = {
        name: rows[name] if name in plain else rows[name].combine_chunks().dictionary_encode()
        for name in rows.column_names
        if name not in ("f", "y", "w")
    }
    return merged_cells(pa.table({**keys, "n": np.ones(len(rows), dtype=np.int64), **sums}))


def merged_cells(cells: pa.Table) -> pa.Table:
    """Cells of one key put together: of one place, and of one hash of all other columns but the sums."""
    cells = cells.unify_dictionaries().combine_chunks()
    place = cells[PLACE].to_numpy()
    _, other = np.unique(cells[SPREAD].to_numpy(), return_inverse=True)
    key = other.reshape(-1) * (place.max(initial=0) + 1) + place
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    rows = np.diff(first, append=len(key))
    one = order[first]
    columns = {}
    for name in cells.column_names:
        column = cells[name]
        if name in SUMS:
            columns[name] = np.add.reduceat(column.to_numpy()[order], first) if len(first) else column
            continue
        code = _codes(column)
        if not np.array_equal(code[order], np.repeat(code[one], rows)):
            raise McsparkError(
                "two combinations of groups have one hash; change the order of groups.columns, and with it "
                "the hashes"
            )
        columns[name] = column.take(pa.array(one))
    return pa.table(columns)


def _codes(column: pa.ChunkedArray) -> IntArray:
    """Numbers that are equal where the values are."""
    if pa.types.is_dictionary(column.type):
        column = pc.fill_null(column.combine_chunks().indices, -1)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def spread_of(words: IntArray) -> IntArray:
    """A number of each row that is spread evenly over all integers, nearly."""
    mixed = np.zeros(len(words), dtype=np.uint64)
    for word in words.T:
        mixed = (mixed ^ word.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    return mixed.astype(np.int64)

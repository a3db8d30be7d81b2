"""Signatures as Spark columns and from Arrow tables: the codes of a row's categories, packed into words."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mcspark.core.cells.groups import Category, FittedGroups, distinct_rows
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.ml.cells.levels import int_array
from mcspark.runtime.columns import with_columns

_MOST_PLACES = 2048  # from the least category to the greatest

_MOST_LISTED = 64
"""More categories than these are not searched one after the other."""

_IN_A_BUCKET = 4


def category_name(i: int) -> str:
    """Name of the working column with the category of family ``i``."""
    return f"__family_{i}"


def word_names(groups: FittedGroups) -> list[str]:
    """Names of the working columns with the words of the signature."""
    return [f"__signature_{i}" for i in range(groups.n_words)]


def with_signature(frame: DataFrame, groups: FittedGroups) -> DataFrame:
    """Add the words of the signature from the category columns."""
    words: list[Column] = [F.lit(0).cast("long")] * groups.n_words
    for i, (family, place) in enumerate(zip(groups.signed, groups.layout, strict=True)):
        if not family.categories:
            continue
        code = F.coalesce(place_among(F.col(category_name(i)), family.categories), F.lit(0)).cast("long")
        words[place.word] = words[place.word].bitwiseOR(F.shiftleft(code, place.shift))
    return with_columns(frame, dict(zip(word_names(groups), words, strict=True)))


def place_among(category: Column, categories: tuple[Category, ...]) -> Column:
    """Place among the categories from 1 on; 0 or null where it is none of them."""
    whole = [c for c in categories if isinstance(c, int)]
    if len(whole) == len(categories) and (span := max(whole) - min(whole)) < _MOST_PLACES:
        # A table by the number itself: searching a list costs several times as much.
        places = np.zeros(span + 1, dtype=np.int64)
        places[np.array(whole) - min(whole)] = np.arange(1, len(whole) + 1)
        near = category.between(min(whole), max(whole))
        return F.when(near, F.get(int_array(places), (category - min(whole)).cast("int")))
    if len(categories) > _MOST_LISTED:
        return _place_by_checksum(category.cast("string"), categories)
    return F.call_function("array_position", F.array(*[F.lit(c) for c in categories]), category)


def _place_by_checksum(text: Column, categories: tuple[Category, ...]) -> Column:
    """The same for many categories, of which the few with one remainder of a checksum are searched."""
    count = len(categories) // _IN_A_BUCKET + 1
    places: list[list[int]] = [[] for _ in range(count)]
    for place, category in enumerate(categories, start=1):
        places[zlib.crc32(str(category).encode()) % count].append(place)
    names = [[str(categories[place - 1]) for place in some] for some in places]
    bucket = (F.crc32(text) % F.lit(count)).cast("int")
    # Constants as one text each: Spark parses them once, where the query is optimised.
    within = F.get(F.from_json(F.lit(json.dumps(names)), "array<array<string>>"), bucket)
    found = F.get(F.from_json(F.lit(json.dumps(places)), "array<array<int>>"), bucket)
    return F.get(found, (F.call_function("array_position", within, text) - 1).cast("int"))


def signature_of(table: pa.Table, groups: FittedGroups) -> IntArray:
    """The same words, shape (N, n_words), from category columns of an Arrow table that are dictionaries."""
    codes = np.zeros((len(table), len(groups.signed)), dtype=np.int64)
    for i, family in enumerate(groups.signed):
        column = table[category_name(i)].combine_chunks()
        known = pa.array(family.categories, column.dictionary.type)
        found = pc.fill_null(pc.index_in(column.dictionary, known), -1).to_numpy() + 1
        codes[:, i] = np.append(found, 0)[pc.fill_null(column.indices, -1).to_numpy()]
    return groups.words(codes)


def signature_weights(frame: DataFrame, groups: FittedGroups, weight: str | None) -> tuple[Any, Any]:
    """Distinct signatures, shape (S, n_words), and their weights, shape (S,)."""
    names = word_names(groups)
    value = F.col(weight) if weight else F.lit(1.0)
    table = with_signature(frame, groups).groupBy(*names).agg(F.sum(value).alias("w")).toPandas()
    return table[names].to_numpy(np.int64), table["w"].to_numpy(np.float64)


def weight_of(cells: pa.Table) -> IntArray:
    """The weights of cells as integers; where nothing has a weight, every row weighs 1."""
    return np.asarray(cells["weight" if "weight" in cells.column_names else "n"].to_numpy())


def category_weights(cells: pa.Table, families: int) -> Iterator[tuple[int, Category | None, int]]:
    """Number, category and weight, once for each category of each family in an Arrow table of cells."""
    weight = weight_of(cells)
    for i in range(families):
        column = cells[category_name(i)].combine_chunks()
        codes = pc.fill_null(column.indices, len(column.dictionary)).to_numpy()
        sums = np.zeros(len(column.dictionary) + 1, dtype=np.int64)
        np.add.at(sums, codes, weight)
        names = [*column.dictionary.to_pylist(), None]
        yield from ((i, names[code], int(sums[code])) for code in np.unique(codes))


def signature_weights_of(cells: pa.Table, groups: FittedGroups) -> tuple[IntArray, FloatArray]:
    """As :func:`signature_weights`, from an Arrow table of cells."""
    signatures, place = distinct_rows(signature_of(cells, groups))
    sums = np.zeros(len(signatures), dtype=np.int64)
    np.add.at(sums, place, weight_of(cells))
    return signatures, sums.astype(np.float64)

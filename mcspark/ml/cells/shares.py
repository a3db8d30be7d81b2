"""How much of the weight each category of each family holds."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType

from mcspark.core.cells.groups import Category, Family
from mcspark.errors import ContractError
from mcspark.ml.cells.signatures import category_name, category_weights

MAX_CATEGORIES = 10_000
"""A column with more distinct values than this is no column of groups or features."""


def category_shares(
    frame: DataFrame, families: tuple[Family, ...], weight: str | None
) -> list[dict[Category, float]]:
    """Share of the weight of every category of every family; one small row a category reaches the driver."""
    if not families:
        return []
    names = [category_name(i) for i in range(len(families))]
    integral = {f.name for f in frame.schema.fields if isinstance(f.dataType, IntegralType)}
    value = F.col(weight) if weight else F.lit(1.0)
    # Distinct combinations first: they are few, so the rows themselves are never multiplied.
    profiles = frame.groupBy(*names).agg(F.sum(value).alias("w"))
    entries = F.array(
        *[
            F.struct(F.lit(i).alias("family"), F.col(n).cast("string").alias("category"))
            for i, n in enumerate(names)
        ]
    )
    table = (
        profiles.select(F.explode(entries).alias("e"), "w")
        .groupBy("e.family", "e.category")
        .agg(F.sum("w").alias("w"))
        .limit(MAX_CATEGORIES * len(families) + 1)
        .collect()
    )

    def category(row: Row) -> Category | None:
        text: str | None = row["category"]
        return int(text) if text is not None and names[row["family"]] in integral else text

    return _shares(((row["family"], category(row), row["w"]) for row in table), families)


def shares_of(cells: pa.Table | None, families: tuple[Family, ...]) -> list[dict[Category, float]]:
    """The same from an Arrow table of cells by their categories; None is a table of no cell."""
    return _shares(() if cells is None else category_weights(cells, len(families)), families)


def _shares(
    found: Iterable[tuple[int, Category | None, float]], families: tuple[Family, ...]
) -> list[dict[Category, float]]:
    """Shares from the weight of each category of each family, and that of the rows without one."""
    if not families:
        return []
    weights: list[dict[Category | None, float]] = [{} for _ in families]
    for number, category, weight in found:
        weights[number][category] = weight
    total = sum(weights[0].values())
    if not total > 0:
        raise ContractError(
            "no labelled row has any weight, so no group can be chosen; check label and weight"
        )
    shares = [
        {category: weight / total for category, weight in of.items() if category is not None}
        for of in weights
    ]
    for family, share in zip(families, shares, strict=True):
        if len(share) > MAX_CATEGORIES:
            raise ContractError(
                f"column {family.column!r} has over {MAX_CATEGORIES} distinct values and is no column "
                "of groups or features; "
                "give it bins or divide_by, or name the groups by predicates"
            )
    return shares

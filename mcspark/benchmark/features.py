"""The trees' features, made from the raw attributes in plain SQL by the groups' names alone."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.ml.feature import VectorAssembler
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

CATEGORIES = {
    "RAC1P": "concat('RAC1P=', RAC1P)",
    "SEX": "concat('SEX=', SEX)",
    "AGEP": (
        "CASE WHEN AGEP < 5 THEN 'AGEP=[0,5)' WHEN AGEP < 18 THEN 'AGEP=[5,18)' "
        "WHEN AGEP < 25 THEN 'AGEP=[18,25)' WHEN AGEP < 35 THEN 'AGEP=[25,35)' "
        "WHEN AGEP < 45 THEN 'AGEP=[35,45)' WHEN AGEP < 65 THEN 'AGEP=[45,65)' "
        "WHEN AGEP < 85 THEN 'AGEP=[65,85)' WHEN AGEP < 100 THEN 'AGEP=[85,100)' "
        "WHEN AGEP < 120 THEN 'AGEP=[100,120)' END"
    ),
    "SCHL": (
        "CASE WHEN SCHL < 16 THEN 'SCHL=[0,16)' WHEN SCHL < 18 THEN 'SCHL=[16,18)' "
        "WHEN SCHL < 20 THEN 'SCHL=[18,20)' WHEN SCHL < 21 THEN 'SCHL=[20,21)' "
        "WHEN SCHL < 22 THEN 'SCHL=[21,22)' WHEN SCHL < 25 THEN 'SCHL=[22,25)' END"
    ),
    "OCCP": "concat('OCCP/100=', cast(floor(OCCP / 100) as int))",
}
"""Name of the group of a row, by attribute; null where it is in none."""


def memberships(groups: Sequence[str]) -> dict[str, Column]:
    """One 0/1 column a group, by names ``g0, g1 …``; no row has a null in it."""
    columns = {}
    for i, group in enumerate(groups):
        category = CATEGORIES[group.partition("=")[0].partition("/")[0]]
        inside = F.coalesce(F.expr(category) == F.lit(group), F.lit(False))
        columns[f"g{i}"] = inside.cast("tinyint")
    return columns


def with_features(rows: DataFrame, groups: Sequence[str]) -> DataFrame:
    """Add the vector ``features``: the score, then the groups."""
    names = list(memberships(groups))
    framed = rows.withColumns(memberships(groups))
    return VectorAssembler(inputCols=["score", *names], outputCol="features").transform(framed).drop(*names)

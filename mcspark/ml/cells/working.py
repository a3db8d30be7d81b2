"""Working columns: score, label and weight under names that no table has, checked before any arithmetic."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType

from mcspark.core.cells.cells import Role
from mcspark.errors import ContractError
from mcspark.identifiers import folded, quote_identifier
from mcspark.ml.cells.cells import ScoredColumns
from mcspark.runtime.columns import as_double, column

WORKING = ScoredColumns("__score", "__label", "__weight", "__split")
"""The working names."""

_OWN = re.compile(r"__(score|label|weight|split|place|spread|(family|given|signature)_\d+)\Z")


def working_columns(frame: DataFrame, columns: ScoredColumns, *, labelled: bool) -> DataFrame:
    """Add the working columns.

    Parameters
    ----------
    frame : DataFrame
    columns : ScoredColumns
        Names in ``frame``.
    labelled : bool
        Keep only the rows with a label, with label, weight and split checked too.

    Raises
    ------
    ContractError
        If a column is missing or called as a working column, or a value is null, not finite or out of range:
        with counts by column.
    """
    _refuse_working_names(frame)
    wanted = [columns.score, *([columns.label, columns.weight, columns.split] if labelled else [])]
    present = {name.lower() for name in frame.columns}
    missing = [name for name in wanted if name and name.lower() not in present]
    if missing:
        raise ContractError(f"the table lacks column(s) {missing}; it has {sorted(frame.columns)[:20]}")
    kinds = {field.name.lower(): field.dataType for field in frame.schema}
    added = {WORKING.score: _double(columns.score, kinds)}
    if labelled:
        frame = frame.where(F.col(quote_identifier(columns.label)).isNotNull())
        added[WORKING.label] = _double(columns.label, kinds)
        if columns.weight:
            added[str(WORKING.weight)] = _double(columns.weight, kinds)
        if columns.split:
            added[str(WORKING.split)] = F.col(quote_identifier(columns.split))
    frame = frame.withColumns(added)
    _refuse_bad_values(frame, columns, labelled=labelled)
    return frame


def _refuse_working_names(frame: DataFrame) -> None:
    """A column of the caller's is never replaced by one of ours."""
    if taken := [name for name in frame.columns if _OWN.match(folded(name))]:
        raise ContractError(f"the table has columns that are kept for working columns: {taken}; rename them")


def _double(name: str, kinds: Mapping[str, DataType]) -> Column:
    kind = kinds.get(name.lower())
    return as_double(name, kind) if isinstance(kind, StringType) else column(name).cast("double")


def _refuse_bad_values(frame: DataFrame, columns: ScoredColumns, *, labelled: bool) -> None:
    within = {columns.score: F.col(WORKING.score).between(0.0, 1.0)}
    if labelled:
        within[columns.label] = F.col(WORKING.label).between(0.0, 1.0)
        if columns.weight:
            weight = F.col(str(WORKING.weight))
            within[columns.weight] = (weight >= 0) & (weight < float("inf"))
        if columns.split:
            within[columns.split] = F.col(str(WORKING.split)).isin([r.name for r in Role])
    # NaN is greater than every number to Spark, so it is never within.
    counts = [F.count_if(~F.coalesce(ok, F.lit(False))) for ok in within.values()]
    row = frame.agg(*counts).first()
    assert row is not None
    bad = {name: n for name, n in zip(within, row, strict=True) if n}
    if bad:
        found = ", ".join(f"{n} in {name}" for name, n in bad.items())
        raise ContractError(
            f"values that are null, not finite or out of range: {found}; scores and labels lie in [0, 1], "
            "weights are not negative, the split is fit, early_stopping or test"
        )

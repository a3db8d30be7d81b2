"""Labels from a table of their own, beside the scored rows before these are judged."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mcspark.config import LabelTable
from mcspark.data.keys import check_unique
from mcspark.data.names import keys_told
from mcspark.data.tables import where
from mcspark.runtime.columns import column


def with_labels(
    scored: DataFrame, key: Sequence[str], labels: DataFrame, table: LabelTable, name: str
) -> DataFrame:
    """Left join of the labels on the key; a row without one is not labelled.

    Parameters
    ----------
    scored : DataFrame
        The scored table as it was read: its keys may be null or repeated, and are judged later.
    key : sequence of str
        Names of the key columns on both sides, of comparable types (:mod:`mcspark.data.schema`).
    labels : DataFrame
    table : LabelTable
    name : str
        What the label is called beside the scores.

    Raises
    ------
    ContractError
        If two labels have one key.
    """
    check_unique(labels, key, source=where(table), mend="keep one label a key")
    marks = [f"__label_key_{j}" for j in range(len(key))]
    right = labels.select(
        *(column(k).alias(mark) for k, mark in zip(key, marks, strict=True)),
        column(table.label).alias(name),
    )
    matches = [column(k) == column(mark) for k, mark in zip(key, marks, strict=True)]
    return scored.join(right, on=matches, how="left").drop(*marks)


def no_label_told(scored: DataFrame, labels: DataFrame, key: Sequence[str], table: LabelTable) -> str:
    """Why no scored row has a label, with keys of both sides."""
    names = [column(k) for k in key]
    known = labels.where(F.col(table.label).isNotNull()) if table.label in labels.columns else labels
    ours, theirs = (side.select(*names).take(5) for side in (scored, known))
    return (
        f"{where(table)}: none of its labels belongs to a scored row; {keys_told(ours, theirs)}; "
        "wait until labels have arrived, or write the keys of both tables alike"
    )

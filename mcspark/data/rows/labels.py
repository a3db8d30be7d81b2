"""Labels from a table of their own, beside the scored rows before these are judged."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from mcspark.config import LabelTable
from mcspark.data.formats.names import keys_told
from mcspark.data.rows.join import left_join
from mcspark.data.rows.keys import check_unique
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
        Names of the key columns on both sides, of comparable types (:mod:`mcspark.data.rows.schema`).
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
    return left_join(scored, labels, key, marks, [column(table.label).alias(name)]).drop(*marks)


def no_label_told(scored: DataFrame, labels: DataFrame, key: Sequence[str], table: LabelTable) -> str:
    """Why no scored row has a label, with keys of both sides."""
    names = [column(k) for k in key]
    known = labels.where(column(table.label).isNotNull())
    ours, theirs = (side.select(*names).take(5) for side in (scored, known))
    return (
        f"{where(table)}: none of its labels belongs to a scored row; {keys_told(ours, theirs)}; "
        "wait until labels have arrived, or write the keys of both tables alike"
    )

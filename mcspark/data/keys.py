"""Keys that name one row: an exact test by hashes, and the documented way to mend repeated keys."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from mcspark.data.contract import FAULTS, bit
from mcspark.data.names import shown
from mcspark.errors import ContractError
from mcspark.runtime.columns import column

_HASH = "__hash"


def check_unique(df: DataFrame, key: Sequence[str], *, source: str, mend: str) -> None:
    """Refuse a table in which two rows have one key; rows with a null in the key are not looked at.

    Equal keys have equal hashes, so distinct hashes prove distinct keys, and only 8 bytes a row are
    shuffled. Where hashes repeat (two rows among 10**8 do by chance in 0.03 % of tables) the keys decide.

    Parameters
    ----------
    df : DataFrame
    key : sequence of str
    source, mend : str
        Name of the table, and what its owner can do, for the message.

    Raises
    ------
    ContractError
        With the number of repeated keys, the rows that have them, and up to five of them.
    """
    hashed = F.xxhash64(*(column(name) for name in key)).alias(_HASH)
    present = df.select(*(column(name) for name in key), hashed)
    for name in key:
        present = present.where(column(name).isNotNull())
    hashes = present.select(_HASH)
    repeated = hashes.groupBy(_HASH).count().where("count > 1").select(_HASH)
    if not repeated.take(1):
        return
    suspects = present.join(repeated, on=_HASH, how="left_semi")
    keys = suspects.groupBy(*(column(name) for name in key)).agg(F.count(F.lit(1)).alias("__rows"))
    keys = keys.where("__rows > 1")
    total = keys.agg(F.count(F.lit(1)), F.sum("__rows")).head()
    if total is None or not total[0]:
        return
    examples = keys.orderBy(*(column(name) for name in key)).drop("__rows").take(5)
    raise ContractError(
        f"{source}: {total[0]} key(s) ({', '.join(key)}) are on {total[1]} rows, such as "
        f"{', '.join(shown(row) for row in examples)}; {mend}"
    )


def supersede(df: DataFrame, key: Sequence[str], latest_by: str) -> DataFrame:
    """Mark all rows of a key but the latest as superseded, so that they are counted among the rejected.

    The latest row stands even if it has another fault: an older one never takes its place. Rows that tie
    stay, and :func:`check_unique` refuses them. A null in ``latest_by`` is older than everything.

    Parameters
    ----------
    df : DataFrame
        From :func:`mcspark.data.contract.apply_row_rules`, with ``latest_by`` kept.
    key : sequence of str
    latest_by : str
        An ordered column: the greatest value is the latest.
    """
    by_key = Window.partitionBy(*(column(name) for name in key)).orderBy(column(latest_by).desc_nulls_last())
    old = F.when(F.rank().over(by_key) > 1, F.lit(bit("superseded"))).otherwise(F.lit(0))
    keyed = column(FAULTS).bitwiseAND(bit("null_key")) == 0
    # Rows without a key stay out of the window: they would all meet in one task.
    marked = df.where(keyed).withColumn(FAULTS, column(FAULTS).bitwiseOR(old))
    return marked.unionByName(df.where(~keyed))

"""What each labelled row is for, by a hash of its key: stable under any reordering or repartitioning.

The hash is XXH64 with seed 42 of the UTF-8 bytes of ``seed``, U+001F, and the key columns as text, parted by
U+001F; its upper 53 bits over 2**53 are the place u in [0, 1) of the row. With ``test`` and
``early_stopping`` the configured shares:

- u < test: ``test``;
- u < test + (1 − test)·early_stopping: ``early_stopping``;
- otherwise ``fit``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mcspark.config import Split
from mcspark.core.cells.cells import Role
from mcspark.errors import ContractError
from mcspark.runtime.columns import column

SPLIT = "split"
"""The column with the name of the row's :class:`~mcspark.core.cells.cells.Role`; null where unlabelled."""

_SEPARATOR = "\x1f"
_HASH_BITS = 64
_DOUBLE_BITS = 53


def place(key: Sequence[str], seed: int) -> Column:
    """The place in [0, 1) of each row; its key must not be null."""
    text = F.concat_ws(_SEPARATOR, F.lit(str(seed)), *(column(name).cast("string") for name in key))
    upper = F.shiftrightunsigned(F.xxhash64(text), _HASH_BITS - _DOUBLE_BITS)
    return upper.cast("double") / F.lit(2.0**_DOUBLE_BITS)


def role(key: Sequence[str], label: Column, split: Split) -> Column:
    """Name of the role of each row; null where the label is.

    Parameters
    ----------
    key : sequence of str
    label : Column
    split : Split
        Shares, seed, and the column that already says ``fit`` or ``test``, if there is one: then the rows for
        early stopping are drawn from its ``fit``. Where whole partitions are held out, no row is by its key.
    """
    u = place(key, split.seed)
    stops, fits = F.lit(Role.early_stopping.name), F.lit(Role.fit.name)
    if split.by == "time":
        drawn = F.when(u < split.early_stopping, stops).otherwise(fits)
    elif split.column:
        given = column(split.column)
        drawn = F.when(given == Role.fit.name, F.when(u < split.early_stopping, stops).otherwise(fits))
        drawn = drawn.otherwise(given)
    else:
        edge = split.test + (1 - split.test) * split.early_stopping
        drawn = F.when(u < split.test, F.lit(Role.test.name)).when(u < edge, stops).otherwise(fits)
    return F.when(label.isNotNull(), drawn)


def check_given_split(df: DataFrame, label: str, given: str, *, source: str) -> None:
    """Refuse a split column that says something else than ``fit`` or ``test`` for a labelled row.

    Raises
    ------
    ContractError
        With the number of rows and up to five of the values.
    """
    known = (Role.fit.name, Role.test.name)
    other = df.where(column(label).isNotNull() & ~F.coalesce(column(given).isin(*known), F.lit(False)))
    values = other.groupBy(column(given).alias("value")).count().orderBy(F.desc("count"), "value")
    found = values.agg(F.sum("count")).head()
    if found is not None and found[0]:
        shown = ", ".join(repr(row["value"]) for row in values.take(5))
        raise ContractError(
            f"{source}: {found[0]} labelled row(s) whose {given} is neither 'fit' nor 'test' but {shown}; "
            "correct the column, or leave split.column out to draw the split"
        )

"""The row contract of the scored table: one pass gives every row its faults, and one job counts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mcspark.data.names import shown
from mcspark.errors import ContractError
from mcspark.identifiers import quote_identifier
from mcspark.runtime.columns import column

if TYPE_CHECKING:
    from mcspark.config import ScoredTable

NOISE = 1e-9
"""A score or label this little outside [0, 1] is rounding noise: clipped and counted."""

FAULTS = "__faults"
"""Working column: the faults of a row, one bit each; 0 for a row that is accepted."""

_CLIPPED = "__clipped"
_NEGATIVE = "__negative"

REASONS = (
    "null_key",
    "score_null", "score_not_numeric", "score_nan", "score_infinite", "score_out_of_range",
    "label_not_numeric", "label_nan", "label_infinite", "label_out_of_range",
    "weight_null", "weight_not_numeric", "weight_nan", "weight_infinite",
    "superseded", "unmatched",
)  # fmt: skip
"""Why a row is rejected; the place of a reason is its bit in :data:`FAULTS`."""


def bit(reason: str) -> int:
    """The bit of a reason."""
    return 1 << REASONS.index(reason)


def reasons_of(faults: int) -> list[str]:
    """The reasons that the bits stand for."""
    return [reason for reason in REASONS if faults & bit(reason)]


def apply_row_rules(
    df: DataFrame, scored: ScoredTable, *, with_label: bool = True, keep: Sequence[str] = ()
) -> DataFrame:
    """Key, score, label and weight as doubles, the columns to keep, and the faults of each row.

    A null label is no fault: the row is not labelled. Rounding noise (:data:`NOISE`) is clipped and −0.0
    becomes 0.0; every other value stays as it came, so that a rejected row can be looked into. The schema
    must have passed :func:`mcspark.data.schema.check_scored_schema`.

    Parameters
    ----------
    df : DataFrame
    scored : ScoredTable
        Names of the columns.
    with_label : bool
        False leaves the label out, as for a table to be scored only.
    keep : sequence of str
        Further columns, passed through.
    """
    faults: dict[str, Column] = {"null_key": _any(column(name).isNull() for name in scored.key)}
    values: dict[str, Column] = {}
    clipped: list[Column] = []
    negative = F.lit(False)

    score = _number(scored.score)
    values[scored.score] = _within_range(score)
    faults |= {"score_null": column(scored.score).isNull()} | _value_faults("score", scored.score)
    faults["score_out_of_range"] = _outside(score)
    clipped.append(_is_noise(score))
    if with_label and scored.label:
        label = _number(scored.label)
        values[scored.label] = _within_range(label)
        faults |= _value_faults("label", scored.label)
        faults["label_out_of_range"] = _outside(label)
        clipped.append(_is_noise(label))
    if scored.weight:
        values[scored.weight] = _number(scored.weight)
        faults |= {"weight_null": column(scored.weight).isNull()} | _value_faults("weight", scored.weight)
        negative = F.coalesce(_number(scored.weight) < 0, F.lit(False))
    bits = [F.when(fault, F.lit(bit(reason))).otherwise(F.lit(0)) for reason, fault in faults.items()]
    passed = [name for name in dict.fromkeys((*scored.key, *keep)) if name not in values]
    return df.select(
        *(column(name) for name in passed),
        *(value.alias(name) for name, value in values.items()),
        reduce(Column.bitwiseOR, bits).alias(FAULTS),
        _any(clipped).alias(_CLIPPED),
        negative.alias(_NEGATIVE),
    )


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(lambda one, other: one | other, conditions)


def _number(name: str) -> Column:
    # A text that is no number becomes null in every ANSI mode, and is a fault of its own.
    return F.expr(f"try_cast({quote_identifier(name)} as double)")


def _value_faults(what: str, name: str) -> dict[str, Column]:
    value = _number(name)
    return {
        f"{what}_not_numeric": column(name).isNotNull() & value.isNull(),
        f"{what}_nan": F.isnan(value),
        f"{what}_infinite": F.abs(value) == float("inf"),
    }


def _finite(value: Column) -> Column:
    # Spark holds NaN to be greater than every number.
    return value.isNotNull() & ~F.isnan(value) & (F.abs(value) != float("inf"))


def _outside(value: Column) -> Column:
    return _finite(value) & ((value < -NOISE) | (value > 1 + NOISE))


def _is_noise(value: Column) -> Column:
    return F.coalesce(((value < 0) & (value >= -NOISE)) | ((value > 1) & (value <= 1 + NOISE)), F.lit(False))


def _within_range(value: Column) -> Column:
    low, high = (value <= 0) & (value >= -NOISE), (value > 1) & (value <= 1 + NOISE)
    return F.when(low, F.lit(0.0)).when(high, F.lit(1.0)).otherwise(value)


def accepted(df: DataFrame) -> DataFrame:
    """The rows without a fault, and without the working columns."""
    return df.where(column(FAULTS) == 0).drop(FAULTS, _CLIPPED, _NEGATIVE)


def rejected(df: DataFrame, key: Sequence[str], source: str) -> DataFrame:
    """The rows with a fault: their key, reasons (array of strings), and the table they came from."""
    by_bit = [F.when(column(FAULTS).bitwiseAND(bit(r)) != 0, F.lit(r)) for r in REASONS]
    return df.where(column(FAULTS) != 0).select(
        *(column(name) for name in key),
        F.array_compact(F.array(*by_bit)).alias("reasons"),
        F.lit(source).alias("source"),
    )


@dataclass(frozen=True)
class RowReport:
    """What one pass over the rows found.

    Parameters
    ----------
    rows, accepted, labelled, clipped, negative, weighted : int
        Rows in; rows without a fault; of these, rows with a label, rows with clipped noise; rows in with a
        negative weight; accepted rows with a weight above 0 (labelled ones, if any row is labelled).
    reasons : mapping of str to int
        Rows by reason; a row with two reasons counts in both.
    weight, weight_sq : float
        Sums over the accepted rows with a label, of weights (1 if there are none) and of their squares.
    """

    rows: int
    accepted: int
    labelled: int
    clipped: int
    negative: int
    weighted: int
    reasons: Mapping[str, int]
    weight: float = 0.0
    weight_sq: float = 0.0

    @property
    def rejected(self) -> int:
        """Rows with a fault."""
        return self.rows - self.accepted


def inspect(df: DataFrame, scored: ScoredTable, *, with_label: bool = True) -> RowReport:
    """Count the rows of :func:`apply_row_rules` by fault, in one job that returns a few dozen numbers."""
    labelled = column(scored.label).isNotNull() if with_label and scored.label else F.lit(False)
    positive = column(scored.weight) > 0 if scored.weight else F.lit(True)
    weight = F.when(labelled, column(scored.weight) if scored.weight else F.lit(1.0))
    per_fault = df.groupBy(column(FAULTS)).agg(
        F.count(F.lit(1)).alias("n"),
        F.count_if(labelled).alias("labelled"),
        F.count_if(column(_CLIPPED)).alias("clipped"),
        F.count_if(column(_NEGATIVE)).alias("negative"),
        F.count_if(positive).alias("positive"),
        F.count_if(positive & labelled).alias("positive_labelled"),
        F.sum(weight).alias("weight"),
        F.sum(weight * weight).alias("weight_sq"),
    )
    found = {int(row[FAULTS]): row.asDict() for row in per_fault.collect()}
    clean = found.get(0, {})
    with_labels = int(clean.get("labelled", 0))
    return RowReport(
        rows=sum(row["n"] for row in found.values()),
        accepted=int(clean.get("n", 0)),
        labelled=with_labels,
        clipped=int(clean.get("clipped", 0)),
        negative=sum(row["negative"] for row in found.values()),
        weighted=int(clean.get("positive_labelled" if with_labels else "positive", 0)),
        reasons={r: n for r in REASONS if (n := sum(row["n"] for f, row in found.items() if f & bit(r)))},
        weight=float(clean.get("weight") or 0.0),
        weight_sq=float(clean.get("weight_sq") or 0.0),
    )


def refuse_rejected(
    report: RowReport, *, source: str, max_rejected_share: float = 1.0, allow_empty: bool = False
) -> None:
    """Refuse a table of which too many rows are rejected, or all of them.

    Raises
    ------
    ContractError
        With the counts by reason.
    """
    share = report.rejected / report.rows if report.rows else 0.0
    reasons = ", ".join(f"{reason} {n}" for reason, n in report.reasons.items())
    if share > max_rejected_share:
        raise ContractError(
            f"{source}: {report.rejected} of {report.rows} rows rejected ({share:.2%}, allowed "
            f"{max_rejected_share:.2%}): {reasons}; correct the rows or raise max_rejected_share"
        )
    if not report.accepted and not allow_empty:
        why = f"all {report.rows} rows are rejected: {reasons}" if report.rows else "it has no rows"
        raise ContractError(f"{source}: {why}; set allow_empty to publish an empty output")


def enforce(
    report: RowReport,
    df: DataFrame,
    scored: ScoredTable,
    *,
    source: str,
    max_rejected_share: float = 1.0,
    allow_empty: bool = False,
) -> None:
    """Refuse a table whose rows break the contract as a whole.

    Raises
    ------
    ContractError
        If a weight is negative or no weight is positive; a larger share than ``max_rejected_share`` is
        rejected; or no row is left and ``allow_empty`` is false.
    """
    if report.negative:
        examples = [
            shown(row) for row in df.where(column(_NEGATIVE)).select(*(column(k) for k in scored.key)).take(5)
        ]
        raise ContractError(
            f"{source}: {report.negative} row(s) with a negative {scored.weight}, such as "
            f"{', '.join(examples)}; correct these weights or leave the rows out"
        )
    refuse_rejected(report, source=source, max_rejected_share=max_rejected_share, allow_empty=allow_empty)
    if report.accepted and not report.weighted:
        raise ContractError(
            f"{source}: no {'labelled ' if report.labelled else ''}row has a {scored.weight} above 0, "
            "so nothing counts; correct the weights or leave scored.weight out"
        )

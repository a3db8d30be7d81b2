"""The row contract of the scored table: one pass gives every row its faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, DoubleType, FloatType, StringType, StructType

from mcspark.data.rows.rejection import DECIMAL_COMMA
from mcspark.runtime.columns import as_double, column, tried

if TYPE_CHECKING:
    from mcspark.config import ScoredTable

NOISE = 1e-9
"""A score or label this little outside [0, 1] is rounding noise: clipped and counted."""

FAULTS = "__faults"
"""Working column: the faults of a row, one bit each; 0 for a row that is accepted."""

CLIPPED, NEGATIVE = "__clipped", "__negative"
"""Working columns: whether noise was clipped, and whether the weight is negative."""

SPELLINGS = {"percent": r"%\s*$", "comma": DECIMAL_COMMA}
"""Texts that are no numbers for Spark, and are for people."""

OF_SCORE = "__fault_of "
"""Of several scores, working columns by their names: the bit of what is wrong with each, or 0."""

TEXTS = {(kind, what): f"__{kind}_{what}" for kind in SPELLINGS for what in ("score", "label", "weight")}
"""Working columns: the text of a value that is spelt so."""

REASONS = (
    "null_key",
    "score_null", "score_not_numeric", "score_nan", "score_infinite", "score_out_of_range",
    "label_not_numeric", "label_nan", "label_infinite", "label_out_of_range",
    "weight_null", "weight_not_numeric", "weight_nan", "weight_infinite",
    "superseded", "unmatched", "label_no_class",
)  # fmt: skip
"""Why a row is rejected; the place of a reason is its bit in :data:`FAULTS`."""


SCORE_REASONS = tuple(reason for reason in REASONS if reason.startswith("score_"))
"""Of them those about a score, of which a row has no two for one score."""


def bit(reason: str) -> int:
    """The bit of a reason."""
    return 1 << REASONS.index(reason)


def reason_of(reason: str, score: str) -> str:
    """A reason that is about one of several scores."""
    return f"{reason}: {score}"


def reasons_of(faults: int) -> list[str]:
    """The reasons that the bits stand for."""
    return [reason for reason in REASONS if faults & bit(reason)]


def apply_row_rules(
    df: DataFrame,
    scored: ScoredTable,
    *,
    with_label: bool = True,
    judge_label: bool = True,
    keep: Sequence[str] = (),
) -> DataFrame:
    """Key, scores, label and weight as doubles, the columns to keep, and the faults of each row.

    A null label is no fault: the row is not labelled. Of several scores a row needs all. Rounding noise
    (:data:`NOISE`) is clipped and −0.0 becomes 0.0; every other value stays as it came, so that a rejected
    row can be looked into. The schema must have passed
    :func:`mcspark.data.rows.schema.check_scored_schema`.

    Parameters
    ----------
    df : DataFrame
    scored : ScoredTable
        Names of the columns.
    with_label : bool
        False leaves the label out, as for a table to be scored only.
    judge_label : bool
        False passes the label through, whatever it is: nothing is learned from it.
    keep : sequence of str
        Further columns, passed through.
    """
    faults: dict[str, Column] = {"null_key": _any(column(name).isNull() for name in scored.key)}
    values: dict[str, Column] = {}
    clipped: list[Column] = []
    negative = F.lit(False)

    types = {f.name: f.dataType for f in df.schema.fields}
    by_score: dict[str, dict[str, Column]] = {}
    for name in scored.all_scores:
        score = as_double(name, types.get(name))
        values[name] = _within_range(score)
        by_score[name] = {"score_null": column(name).isNull()} | _value_faults("score", name, score)
        by_score[name]["score_out_of_range"] = _outside(score)
        clipped.append(_is_noise(score))
    faults |= {reason: _any(found[reason] for found in by_score.values()) for reason in SCORE_REASONS}
    if with_label and scored.label and scored.classes is not None:
        values[scored.label] = column(scored.label)
        if judge_label:
            text = class_of(scored.label, df.schema)
            faults["label_no_class"] = text.isNotNull() & ~text.isin(*scored.classes)
    elif with_label and scored.label:
        label = as_double(scored.label, types.get(scored.label))
        values[scored.label] = _within_range(label)
        if judge_label:
            faults |= _value_faults("label", scored.label, label)
            faults["label_out_of_range"] = _outside(label)
        clipped.append(_is_noise(label))
    if scored.weight:
        weight = values[scored.weight] = as_double(scored.weight, types.get(scored.weight))
        faults |= {"weight_null": column(scored.weight).isNull()}
        faults |= _value_faults("weight", scored.weight, weight)
        negative = F.coalesce(weight < 0, F.lit(False))
    bits = [F.when(fault, F.lit(bit(reason))).otherwise(F.lit(0)) for reason, fault in faults.items()]
    passed = [name for name in dict.fromkeys((*scored.key, *keep)) if name not in values]
    return df.select(
        *(column(name) for name in passed),
        *(value.alias(name) for name, value in values.items()),
        reduce(Column.bitwiseOR, bits).alias(FAULTS),
        _any(clipped).alias(CLIPPED),
        negative.alias(NEGATIVE),
        *_spelt(df, scored, with_label),
        *(_fault_of(found).alias(f"{OF_SCORE}{name}") for name, found in by_score.items() if scored.several),
    )


def class_of(label: str, schema: StructType) -> Column:
    """The class that a label names: its text; a whole number's without a point, of whatever type it is."""
    text, whole = column(label).cast("string"), tried(label, "long")
    if not isinstance(schema[label].dataType, FloatType | DoubleType | DecimalType):
        return text
    return F.when(whole == column(label), whole.cast("string")).otherwise(text)


def _fault_of(found: Mapping[str, Column]) -> Column:
    """The bit of the one reason that holds; 0 for none."""
    bits = F.lit(0)
    for reason, fault in found.items():
        bits = F.when(fault, F.lit(bit(reason))).otherwise(bits)
    return bits


def faults_by_score(df: DataFrame) -> dict[str, Column]:
    """The columns :data:`OF_SCORE` by the name of the score; none where there is one score."""
    return {n.removeprefix(OF_SCORE): column(n) for n in df.columns if n.startswith(OF_SCORE)}


def judged(scored: ScoredTable, with_label: bool) -> dict[str, tuple[str, ...]]:
    """Columns of the scores and, where it is there and a number, of the label."""
    is_number = with_label and scored.label and scored.classes is None
    label = {"label": (str(scored.label),)} if is_number else {}
    return {"score": scored.all_scores, **label}


def _spelt(df: DataFrame, scored: ScoredTable, with_label: bool) -> Iterator[Column]:
    """The columns of :data:`TEXTS` that there may be anything in."""
    read = judged(scored, with_label) | ({"weight": (scored.weight,)} if scored.weight else {})
    for (kind, what), name in TEXTS.items():
        texts = [n for n in read.get(what, ()) if isinstance(df.schema[n].dataType, StringType)]
        spelt = [F.when(column(n).rlike(SPELLINGS[kind]), column(n)) for n in texts]
        if spelt:
            yield F.coalesce(*spelt).alias(name)


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(lambda one, other: one | other, conditions)


def _value_faults(what: str, name: str, value: Column) -> dict[str, Column]:
    return {
        f"{what}_not_numeric": column(name).isNotNull() & value.isNull(),
        f"{what}_nan": F.isnan(value),
        f"{what}_infinite": F.abs(value) == float("inf"),
    }


def finite(value: Column) -> Column:
    """Whether a value is a number that is neither NaN nor infinite."""
    # Spark holds NaN to be greater than every number.
    return value.isNotNull() & ~F.isnan(value) & (F.abs(value) != float("inf"))


def _outside(value: Column) -> Column:
    return finite(value) & ((value < -NOISE) | (value > 1 + NOISE))


def _is_noise(value: Column) -> Column:
    return F.coalesce(((value < 0) & (value >= -NOISE)) | ((value > 1) & (value <= 1 + NOISE)), F.lit(False))


def _within_range(value: Column) -> Column:
    low, high = (value <= 0) & (value >= -NOISE), (value > 1) & (value <= 1 + NOISE)
    return F.when(low, F.lit(0.0)).when(high, F.lit(1.0)).otherwise(value)


def accepted(df: DataFrame) -> DataFrame:
    """The rows without a fault, and without the working columns."""
    by_score = (f"{OF_SCORE}{name}" for name in faults_by_score(df))
    return df.where(column(FAULTS) == 0).drop(FAULTS, CLIPPED, NEGATIVE, *TEXTS.values(), *by_score)


def rejected(df: DataFrame, key: Sequence[str], source: str) -> DataFrame:
    """The rows with a fault: their key, reasons (array of strings), and the table they came from.

    Of several scores a reason names the one it is about: ``score_null: b``.
    """
    by_bit = []
    by_score = faults_by_score(df)
    for r in REASONS:
        if r in SCORE_REASONS and by_score:
            of_score = by_score.items()
            by_bit += [F.when(fault == bit(r), F.lit(reason_of(r, name))) for name, fault in of_score]
        else:
            by_bit.append(F.when(column(FAULTS).bitwiseAND(bit(r)) != 0, F.lit(r)))
    return df.where(column(FAULTS) != 0).select(
        *(column(name) for name in key),
        F.array_compact(F.array(*by_bit)).alias("reasons"),
        F.lit(source).alias("source"),
    )

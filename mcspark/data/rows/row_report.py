"""What one job over the rows counts of their faults, and when the table as a whole is refused for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mcspark.core.cells.cells import LEAST_TOTAL
from mcspark.data.formats.names import shown
from mcspark.data.rows.contract import (
    CLIPPED,
    FAULTS,
    NEGATIVE,
    REASONS,
    SCORE_REASONS,
    SPELLINGS,
    TEXTS,
    bit,
    faults_by_score,
    finite,
    judged,
    reason_of,
)
from mcspark.data.rows.rejection import (
    FAULTS_OF_LABELS,
    Range,
    Values,
    label_guess,
    refuse_class,
    refuse_share,
    score_guess,
    spelling_guess,
)
from mcspark.errors import ContractError
from mcspark.runtime.columns import column, tried

if TYPE_CHECKING:
    from mcspark.config import ScoredTable

_CODE = "__code"
_MOST_CODE = 1000
"""Labels that are whole numbers up to this one are told apart; what is further out is no code."""


@dataclass(frozen=True)
class RowReport:
    """What one pass over the rows found.

    Parameters
    ----------
    rows, accepted, labelled, clipped, negative, weighted : int
        Rows in; rows without a fault; of these, rows with a label, rows with clipped noise; rows in with a
        negative weight; accepted rows with a weight above 0 (labelled ones, if any row is labelled).
    reasons : mapping of str to int
        Rows by reason; a row with two reasons counts in both. Of several scores, by reason and score.
    weight, weight_sq : float
        Sums over the accepted rows with a label, of weights (1 if there are none) and of their squares.
    heaviest : float
        The largest of these weights.
    positive : int
        Accepted rows with a label and a weight above 0.
    superseded : int
        Rows that a later one of their key replaces: rejected, as was asked for.
    with_label, label_faults : int
        Rows in that have any label, and those of them with a fault in it.
    score, label, weights : Values
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
    heaviest: float = 0.0
    positive: int = 0
    superseded: int = 0
    with_label: int = 0
    label_faults: int = 0
    score: Values = field(default_factory=Values)
    label: Values = field(default_factory=Values)
    weights: Values = field(default_factory=Values)

    @property
    def rejected(self) -> int:
        """Rows with a fault."""
        return self.rows - self.accepted


def inspect(df: DataFrame, scored: ScoredTable, *, with_label: bool = True) -> RowReport:
    """Count the rows of :func:`mcspark.data.rows.contract.apply_row_rules` by fault.

    One job, which returns a few dozen numbers.
    """
    labelled = column(scored.label).isNotNull() if with_label and scored.label else F.lit(False)
    positive = column(scored.weight) > 0 if scored.weight else F.lit(True)
    weight = F.when(labelled, column(scored.weight) if scored.weight else F.lit(1.0))
    names = judged(scored, with_label)
    last = list(names.values())[-1][-1]
    of_score = [
        (bit(reason), reason_of(reason, name), fault == bit(reason))
        for reason in SCORE_REASONS
        for name, fault in faults_by_score(df).items()
    ]
    whole = tried(last, "int")
    is_code = (whole == column(last)) & whole.between(-_MOST_CODE, _MOST_CODE) & _has("label_out_of_range")
    per_fault = df.groupBy(column(FAULTS), F.when(is_code, whole).alias(_CODE)).agg(
        F.count(F.lit(1)).alias("n"),
        F.count_if(labelled).alias("labelled"),
        F.count_if(column(CLIPPED)).alias("clipped"),
        F.count_if(column(NEGATIVE)).alias("negative"),
        F.count_if(positive).alias("positive"),
        F.count_if(positive & labelled).alias("positive_labelled"),
        F.sum(weight).alias("weight"),
        F.sum(weight * weight).alias("weight_sq"),
        F.max(weight).alias("heaviest"),
        *(how(column(name)).alias(f"{end}{name}") for name in TEXTS.values() if name in df.columns
          for end, how in (("n", F.count), ("such", F.min))),
        *(how(_farthest(n, of)).alias(f"{end}_{what}") for what, n in names.items()
          for end, how, of in (("low", F.min, F.least), ("high", F.max, F.greatest))),
        *(F.count_if(has).alias(f"s{i}") for i, (_, _, has) in enumerate(of_score)),
    )  # fmt: skip
    rows = [row.asDict() for row in per_fault.collect()]
    clean = next((row for row in rows if row[FAULTS] == 0), {})
    with_labels = int(clean.get("labelled", 0))

    def count(what: str, *reasons: str) -> int:
        mask = sum(map(bit, reasons))
        return sum(int(row[what]) for row in rows if not reasons or row[FAULTS] & mask)

    reasons: dict[str, int] = {}
    for reason in REASONS:
        reported = {words: count(f"s{i}") for i, (one, words, _) in enumerate(of_score) if one == bit(reason)}
        reasons |= {words: n for words, n in (reported or {reason: count("n", reason)}).items() if n}

    return RowReport(
        rows=count("n"),
        accepted=int(clean.get("n", 0)),
        labelled=with_labels,
        clipped=int(clean.get("clipped", 0)),
        negative=count("negative"),
        weighted=int(clean.get("positive_labelled" if with_labels else "positive", 0)),
        reasons=reasons,
        weight=float(clean.get("weight") or 0.0),
        weight_sq=float(clean.get("weight_sq") or 0.0),
        heaviest=float(clean.get("heaviest") or 0.0),
        positive=int(clean.get("positive_labelled", 0)),
        superseded=count("n", "superseded"),
        # A text that is no number has become null, and is a label all the same.
        with_label=count("labelled") + count("n", "label_not_numeric"),
        label_faults=count("n", *FAULTS_OF_LABELS),
        score=_values(rows, clean, "score"),
        label=_values(rows, clean, "label"),
        weights=_values(rows, clean, "weight"),
    )


def _has(reason: str) -> Column:
    return column(FAULTS).bitwiseAND(bit(reason)) != 0


def _farthest(names: Sequence[str], of: Callable[..., Column]) -> Column:
    """The least or greatest finite one of a row's values."""
    values = [F.when(finite(column(name)), column(name)) for name in names]
    return of(*values) if len(values) > 1 else values[0]


def _values(rows: Sequence[Mapping[str, Any]], clean: Mapping[str, Any], what: str) -> Values:
    def ends(of: Iterable[Mapping[str, Any]]) -> Range | None:
        low, high = f"low_{what}", f"high_{what}"
        found = [(row[low], row[high]) for row in of if row.get(low) is not None]
        return (min(low for low, _ in found), max(high for _, high in found)) if found else None

    codes: dict[int, int] = {}
    for row in rows if what == "label" else ():
        if row[_CODE] is not None:
            codes[int(row[_CODE])] = codes.get(int(row[_CODE]), 0) + int(row["n"])
    count = {k: sum(int(row.get(f"n{TEXTS[k, what]}") or 0) for row in rows) for k in SPELLINGS}
    such = [text for row in rows if (text := row.get(f"such{TEXTS['comma', what]}")) is not None]
    return Values(ends(rows), ends([clean]), codes, count["percent"], count["comma"], min(such, default=""))


def refuse_rejected(
    report: RowReport, *, source: str, max_rejected_share: float | None = None, allow_empty: bool = False
) -> None:
    """Refuse a table of which too many rows are rejected, or all of them, or a whole class of labels.

    Raises
    ------
    ContractError
        With the counts by reason.
    """
    reasons = ", ".join(f"{reason} {n}" for reason, n in report.reasons.items())
    reported = reasons
    if any(reason.startswith("score_") for reason in report.reasons):
        reported += score_guess(report.score)
    if report.label_faults:
        reported += label_guess(report.label)
    if any(reason.startswith("weight_") for reason in report.reasons):
        reported += spelling_guess("weight", report.weights)
    if not report.accepted and not allow_empty:
        why = f"all {report.rows} rows are rejected: {reported}" if report.rows else "it has no rows"
        raise ContractError(f"{source}: {why}; set allow_empty to publish an empty output")
    if report.accepted:
        refuse_class(report.label, report.reasons.get("label_out_of_range", 0), source)
    # What dedupe supersedes is rejected as was asked for, and does not count.
    kept, rows = report.rejected - report.superseded, report.rows - report.superseded
    if report.accepted or max_rejected_share is not None:
        refuse_share("rows", kept, rows, max_rejected_share, reported, source)
        refuse_share(
            "labelled rows", report.label_faults, report.with_label, max_rejected_share, reported, source
        )


def enforce(
    report: RowReport,
    df: DataFrame,
    scored: ScoredTable,
    *,
    source: str,
    max_rejected_share: float | None = None,
    allow_empty: bool = False,
) -> None:
    """Refuse a table whose rows break the contract as a whole.

    Raises
    ------
    ContractError
        If a weight is negative, no weight is positive, or a few labelled rows hold all the weight; a larger
        share than ``max_rejected_share`` is rejected (without one, see
        :data:`mcspark.data.rows.rejection.ALLOWED_SHARE`); or no row is left and ``allow_empty`` is false.
    """
    if report.negative:
        examples = [
            shown(row) for row in df.where(column(NEGATIVE)).select(*(column(k) for k in scored.key)).take(5)
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
    _refuse_heaviest(report, df, scored, source)


_LEAST_EFFECTIVE = 20
"""Where a table has more than twice as many labelled rows, they must count like this many equal ones."""


def _refuse_heaviest(report: RowReport, df: DataFrame, scored: ScoredTable, source: str) -> None:
    """Refuse weights of which a few rows have so much that the others say nothing."""
    if not scored.weight or report.positive <= 2 * _LEAST_EFFECTIVE or not report.heaviest:
        return
    if not report.weight < 1 / LEAST_TOTAL:
        return  # whoever needs a sum of such weights refuses them
    share = report.heaviest / report.weight
    effective = 1 / share**2  # at the most
    # Squares may be too large for a double, or too small.
    if LEAST_TOTAL < report.weight_sq < 1 / LEAST_TOTAL:
        effective = min(report.weight / (report.weight_sq / report.weight), effective)
    if effective >= _LEAST_EFFECTIVE:
        return
    heavy = df.where((column(FAULTS) == 0) & (column(scored.weight) == report.heaviest))
    examples = [shown(row) for row in heavy.select(*(column(k) for k in scored.key)).take(5)]
    raise ContractError(
        f"{source}: the {report.positive} labelled rows count like {effective:.1f} rows of equal weight; the "
        f"largest {scored.weight}, {report.heaviest:g}, is {share:.2%} of all weight, such as in "
        f"{', '.join(examples)}; correct or cap the weights"
    )

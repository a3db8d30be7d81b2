"""When so many rows are rejected that the table, not the rows, is at fault; and what may be at fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcspark.errors import ContractError

ALLOWED_SHARE = 0.01
ALLOWED_ROWS = 20
"""Without a share of the user's own: this share may be rejected, and in any case this many rows."""

DECIMAL_COMMA = r"^\s*[-+]?\d*,\d+\s*$"
"""Texts that are numbers but for their decimal comma."""

Range = tuple[float, float]

FAULTS_OF_LABELS = (
    "label_not_numeric",
    "label_nan",
    "label_infinite",
    "label_out_of_range",
    "label_no_class",
)


@dataclass(frozen=True)
class Values:
    """What one pass saw of the finite values of a column.

    Parameters
    ----------
    seen, accepted : (float, float) or None
        Least and greatest value of all rows, and of the rows without a fault.
    codes : mapping of int to int
        Rows of each whole number outside [0, 1].
    percent : int
        Rows whose text ends with a percent sign.
    comma : int
        Rows whose text is a number with a decimal comma.
    such : str
        One of these texts.
    """

    seen: Range | None = None
    accepted: Range | None = None
    codes: Mapping[int, int] = field(default_factory=dict)
    percent: int = 0
    comma: int = 0
    such: str = ""


def refuse_share(what: str, rejected: int, rows: int, allowed: float | None, why: str, source: str) -> None:
    """Refuse more than the allowed share of the rows.

    Raises
    ------
    ContractError
        With counts, reasons and what the values look like.
    """
    share = rejected / rows if rows else 0.0
    most = ALLOWED_SHARE if allowed is None else allowed
    if share <= most or (allowed is None and rejected <= ALLOWED_ROWS):
        return
    raise ContractError(
        f"{source}: {rejected} of {rows} {what} rejected ({share:.2%}, allowed {most:.2%}): {why}; "
        "correct the rows or raise max_rejected_share"
    )


def refuse_class(label: Values, out_of_range: int, source: str) -> None:
    """Refuse labels that lose a whole class: all that is left is one value, or many rows share a code.

    Raises
    ------
    ContractError
    """
    lost = {code: n for code, n in sorted(label.codes.items()) if n > ALLOWED_ROWS}
    one_left = label.accepted is not None and label.accepted[0] == label.accepted[1]
    if not out_of_range or not (lost or (one_left and label.codes)):
        return
    of = ", ".join(f"{code} ({n} rows)" for code, n in list((lost or label.codes).items())[:5])
    left = f"; every label that is left is {label.accepted[0]:g}" if one_left and label.accepted else ""
    raise ContractError(
        f"{source}: every row with the label {of} would be rejected{left}{label_guess(label)}; map labels "
        "to [0, 1], and make those null that say nothing"
    )


def spelling_guess(what: str, values: Values) -> str:
    """How texts are written that are no numbers, as an addition to a message."""
    if values.percent:
        return f"; {values.percent} {what}s are written as percent: divide by 100, without the sign"
    if values.comma:
        such = values.such.strip()
        return (
            f"; {values.comma} {what}s have a decimal comma, such as '{such}': write {such.replace(',', '.')}"
        )
    return ""


def score_guess(score: Values) -> str:
    """What scores that are no numbers in [0, 1] may be, as an addition to a message."""
    spelt = spelling_guess("score", score)
    if spelt or score.seen is None:
        return spelt
    low, high = score.seen
    run = f"; scores run from {low:g} to {high:g}"
    if low < 0:
        return f"{run}: if they are log-odds, use 1 / (1 + exp(-x))"
    if 1 < high <= 10 and low == int(low):
        return f"{run}: if they are ranks or deciles, use the mean label of each"
    if 1 < high <= 100:
        return f"{run}: divide by 100"
    return f"{run}: divide by 1000" if 500 < high <= 1000 and low < 100 else run


def label_guess(label: Values) -> str:
    """What labels that are no numbers in [0, 1] may be, as an addition to a message."""
    spelt = spelling_guess("label", label)
    if spelt or label.seen is None:
        return spelt
    low, high = label.seen
    codes = set(label.codes)
    if codes == {-1} and high == 1:
        return "; labels are -1 and 1: write 0 for -1"
    if codes == {2} and low == 1:
        return "; labels are 1 and 2: subtract 1"
    run = f"; labels run from {low:g} to {high:g}"
    if low >= 0 and 1 < high <= 10:
        return f"{run}: if they are deciles or grades, map each to [0, 1]"
    return f"{run}: divide by 100" if low >= 0 and 10 < high <= 100 else run

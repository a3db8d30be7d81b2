"""What has changed since an earlier run, as rows of a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcspark.report.facts import MISSING, number

CHANGED, WORSE = "changed", "worse"
"""Verdicts that ask for a look."""


@dataclass(frozen=True)
class DriftRow:
    """One thing that was compared.

    Attributes
    ----------
    what : str
    then, now, change, chance : str
        Values of the earlier and this run, an interval on a line of its own; their difference; the
        difference that chance explains. A dash where there is no such number.
    verdict : str
    """

    what: str
    then: str
    now: str
    change: str
    chance: str
    verdict: str

    @property
    def is_notable(self) -> bool:
        """Whether chance does not explain it."""
        return self.verdict in (CHANGED, WORSE)


def drift_rows(drift: Mapping[str, Any]) -> Sequence[DriftRow]:
    """The rows.

    Parameters
    ----------
    drift : mapping
        What the summary of an audit says under ``drift``.
    """
    then, now, change, chance = (
        _percent(drift[f"share_{when}"]) for when in ("then", "now", "change", "noise")
    )
    group = "group" if drift["share_group"] is None else drift["share_group"]
    rows = [
        DriftRow(
            "score distribution", MISSING, MISSING, number(drift["score_distance"]),
            number(drift["score_noise"]), _verdict(drift["score_distance"], drift["score_noise"]),
        ),
        DriftRow(
            f"share of {group}", then, now, change, chance,
            _verdict(drift["share_change"], drift["share_noise"]),
        ),
    ]  # fmt: skip
    for m, error in drift["mc_error"].items():
        old, new = error["then"], error["now"]
        verdict = WORSE if error["worse"] else "no worse" if new <= old else "within intervals"
        rows.append(
            DriftRow(
                f"MC error, {m} levels", _with_interval(old, error["then_interval"]),
                _with_interval(new, error["now_interval"]), f"{new - old:+.4f}", MISSING, verdict,
            )
        )  # fmt: skip
    return rows


def _verdict(change: float | None, chance: float | None) -> str:
    if change is None or chance is None:
        return "cannot be compared"
    return CHANGED if change > chance else "no more than chance"


def _percent(value: float | None) -> str:
    return MISSING if value is None else f"{100 * value:.2f} %"


def _with_interval(value: float, ends: Sequence[float | None]) -> str:
    low, high = ends
    known = low is not None and high is not None
    return f"{number(value)}\n({number(low)} to {number(high)})" if known else number(value)

"""The quality gate: what must hold on held-out rows for the output to be published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcspark.config import Gate
from mcspark.core.metrics.metrics import Metrics
from mcspark.core.metrics.noise import QUANTILES
from mcspark.errors import GateError


def unmet(gate: Gate, before: Metrics, after: Metrics, *, changes: bool = True) -> list[str]:
    """What a calibrated score fails of the gate, on any evaluation grid; empty if it may be published.

    ``max_mc_error`` refuses an MC error above the limit. ``must_improve`` refuses one that has become worse
    beyond noise: larger than chance explains (the upper quantile of the noise floor), and larger than before
    by more than chance moves it (from the middle of the floor to that quantile). The same is asked of the
    MA error of the score itself, for a grid cannot tell scores apart that are all in one of its levels; a
    grid that is blind so is called that.

    What cannot be measured is not met. Only a calibrator that ``changes`` no score makes none worse.
    """
    problems = []
    blind: dict[int | None, str] = {full.m: full.words() for full in before.lead.blind}
    for m, floor in after.floors.items():
        error, old = floor.observed, before.floors[m].observed
        name = "MA error" if m is None else "MC error"
        where = (
            "of the score itself"
            if m is None
            else f"at {m} levels (worst group {after.by_level[m].worst_group})"
        )
        seen = f", blind to these scores ({blind[m]})," if m in blind else ""
        limit = None if m is None else gate.max_mc_error
        if error is None or old is None:
            continue
        if limit is not None and error > limit:
            problems.append(f"{name} {error:.5f} {where}{seen} is above gate.max_mc_error {limit:g}")
        chance = floor.quantiles.get(QUANTILES[-1], 0.0)
        moves = chance - (floor.expected or 0.0)
        if gate.must_improve and error > chance and error - old > moves:
            problems.append(
                f"{name} {error:.5f} {where}{seen} was {old:.5f} before; chance explains {chance:.5f}, "
                f"and a change of {moves:.5f}"
            )
    asked = ["gate.max_mc_error"] if gate.max_mc_error is not None else []
    asked += ["gate.must_improve"] if gate.must_improve and changes else []
    reason = unmeasured(before) or unmeasured(after)
    if asked and reason:
        problems.append(f"{' and '.join(asked)} cannot be measured: {reason}")
    return problems


def unmeasured(metrics: Metrics) -> str | None:
    """Why there is no MC error; None where there is one."""
    if all(errors.mc_error is not None for errors in metrics.by_level.values()):
        return None
    if not metrics.rows:
        return "no labelled row is held out (see the section split)"
    if metrics.loss is None:
        return f"the {metrics.rows} held-out rows have no weight"
    if not metrics.groups:
        return "there is no group (see groups.min_share)"
    largest = max(metrics.groups, key=lambda group: group.rows)
    return (
        "every group has no weight or fewer held-out rows than evaluation.min_group_rows; "
        f"the largest, {largest.group}, has {largest.rows}"
    )


def refusal(problems: Sequence[str], kept: Mapping[str, str]) -> GateError:
    """The error that ends the run; tells where the candidate is kept."""
    aside = f"; the candidate is kept in {kept['output']}" if kept else ""
    report = f", its report is {kept['report']}" if "report" in kept else ""
    return GateError(
        f"the quality gate is not met, nothing was published: {'; '.join(problems)}{aside}{report}; "
        "look at the groups named, give more rows to learn from and to measure on, or change the gate",
        kept,
    )

"""The quality gate: what must hold on held-out rows for the output to be published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcspark.config import Gate
from mcspark.core.metrics import Metrics
from mcspark.core.noise import QUANTILES
from mcspark.errors import GateError


def unmet(gate: Gate, before: Metrics, after: Metrics) -> list[str]:
    """What a calibrated score fails of the gate, on any evaluation grid; empty if it may be published.

    ``max_mc_error`` refuses an MC error above the limit. ``must_improve`` refuses one that has become worse
    beyond noise: larger than chance explains (the upper quantile of the noise floor), and larger than before
    by more than chance moves it (from the middle of the floor to that quantile).
    """
    problems = []
    for m, errors in after.by_level.items():
        error, old = errors.mc_error, before.by_level[m].mc_error
        if error is None or old is None:
            continue
        where = f"at {m} levels (worst group {errors.worst_group})"
        if gate.max_mc_error is not None and error > gate.max_mc_error:
            problems.append(f"MC error {error:.5f} {where} is above gate.max_mc_error {gate.max_mc_error:g}")
        floor = after.floors[m]
        chance = floor.quantiles.get(QUANTILES[-1], 0.0)
        moves = chance - (floor.expected or 0.0)
        if gate.must_improve and error > chance and error - old > moves:
            problems.append(
                f"MC error {error:.5f} {where} was {old:.5f} before; chance explains {chance:.5f}, "
                f"and a change of {moves:.5f}"
            )
    return problems


def refusal(problems: Sequence[str], kept: Mapping[str, str]) -> GateError:
    """The error that ends the run; tells where the candidate is kept."""
    aside = f"; the candidate is kept in {kept['output']}" if kept else ""
    report = f", its report is {kept['report']}" if "report" in kept else ""
    return GateError(
        f"the quality gate is not met, nothing was published: {'; '.join(problems)}{aside}{report}; "
        "look at the groups named, give the calibrator more rows, or change the gate",
        kept,
    )

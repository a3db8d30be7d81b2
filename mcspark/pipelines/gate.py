"""The quality gate: what must hold on held-out rows for the output to be published."""

from __future__ import annotations

from mcspark.config import Gate
from mcspark.core.metrics import Metrics
from mcspark.core.noise import QUANTILES
from mcspark.errors import GateError


def check_gate(gate: Gate, before: Metrics, after: Metrics) -> None:
    """Refuse a calibrated score that fails the gate on any evaluation grid.

    ``must_improve`` refuses an MC error that is larger than before and larger than chance explains (the upper
    quantile of its noise floor); ``max_mc_error`` refuses one above the limit.

    Raises
    ------
    GateError
        With every grid that fails.
    """
    problems = []
    for m, errors in after.by_level.items():
        error, old = errors.mc_error, before.by_level[m].mc_error
        if error is None or old is None:
            continue
        where = f"at {m} levels (worst group {errors.worst_group})"
        if gate.max_mc_error is not None and error > gate.max_mc_error:
            problems.append(f"MC error {error:.5f} {where} is above gate.max_mc_error {gate.max_mc_error:g}")
        chance = after.floors[m].quantiles.get(QUANTILES[-1], 0.0)
        if gate.must_improve and error > old and error > chance:
            problems.append(
                f"MC error {error:.5f} {where} was {old:.5f} before; chance explains {chance:.5f}"
            )
    if problems:
        raise GateError(
            "the quality gate is not met, nothing was published: " + "; ".join(problems)
            + "; look at the groups named, give the calibrator more rows, or change the gate"
        )  # fmt: skip

"""The quality gate: what must hold on held-out rows for the output to be published."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist

from mcspark.config import Config, Gate
from mcspark.core.metrics.metrics import Metrics
from mcspark.core.metrics.noise import QUANTILES
from mcspark.errors import GateError
from mcspark.pipelines.judging.segments import SegmentResult

_FARTHEST, _BEYOND = NormalDist(), 1 - QUANTILES[-1]


def unmet(
    gate: Gate,
    before: Metrics,
    after: Metrics,
    *,
    changes: bool = True,
    among: int = 1,
    limit: str = "gate.max_mc_error",
) -> list[str]:
    """What a calibrated score fails of the gate; empty if it may be published.

    ``max_mc_error`` refuses an MC error above the limit on any evaluation grid, ``groups`` one of a single
    group, ``max_smece`` a smECE of the worst group. ``must_improve`` refuses an MC error that has become
    worse beyond noise: larger than chance explains (the upper quantile of the noise floor), and larger than
    before by more than chance moves it (from the middle of the floor to that quantile). The same is asked of
    the MA error of the score itself, for a grid cannot tell scores apart that are all in one of its levels; a
    grid that is blind so is called that.

    What cannot be measured is not met. Only a calibrator that ``changes`` no score makes none worse. Of
    calibrators of which so many are judged ``among`` one another some look worse by chance: chance reaches
    farther then, as a normal distribution would with one such error in as many. ``limit`` is the setting that
    ``max_mc_error`` comes from.
    """
    farther = _FARTHEST.inv_cdf(1 - _BEYOND / among) / _FARTHEST.inv_cdf(1 - _BEYOND)
    blind: dict[int | None, str] = {
        full.m: f", blind to these scores ({full.words()})," for full in before.lead.blind
    }
    problems = []
    for m, floor in after.floors.items():
        error, old = floor.observed, before.floors[m].observed
        if error is None or old is None:
            continue
        name = f"MA error {error:.5f} of the score itself"
        if m is not None:
            worst = after.by_level[m].worst_group
            name = f"MC error {error:.5f} at {m} levels (worst group {worst}){blind.get(m, '')}"
            if gate.max_mc_error is not None and error > gate.max_mc_error:
                problems.append(f"{name} is above {limit} {gate.max_mc_error:g}")
        chance = floor.quantiles.get(QUANTILES[-1], 0.0)
        chance += (chance - (floor.expected or 0.0)) * (farther - 1)
        moves = chance - (floor.expected or 0.0)
        if gate.must_improve and error > chance and error - old > moves:
            problems.append(
                f"{name} was {old:.5f} before; chance explains {chance:.5f}, and a change of {moves:.5f}"
            )
    smooth = after.smooth.worst
    if gate.max_smece is not None and smooth is not None and smooth > gate.max_smece:
        problems.append(
            f"smECE {smooth:.5f} of group {after.smooth.worst_group} is above gate.max_smece "
            f"{gate.max_smece:g}"
        )
    problems += [problem for name, most in gate.groups.items() for problem in _unmet_by(name, most, after)]
    limits = {limit: gate.max_mc_error, "gate.max_smece": gate.max_smece}
    asked = [name for name, most in limits.items() if most is not None]
    asked += ["gate.must_improve"] if gate.must_improve and changes else []
    reason = unmeasured(before) or unmeasured(after)
    if asked and reason:
        problems.append(f"{' and '.join(asked)} cannot be measured: {reason}")
    return problems


def unmet_by_segment(config: Config, results: Sequence[SegmentResult]) -> list[str]:
    """What segments with a calibrator of their own fail: ``segments.max_mc_error``, and ``must_improve``."""
    own = [result for result in results if result.own]
    limit = config.segments.max_mc_error if config.segments else None
    asked = Gate(max_mc_error=limit, must_improve=config.gate.must_improve)
    problems = []
    for result in own:
        found = unmet(
            asked, result.before, result.after, changes=bool(result.trees), among=len(own),
            limit="segments.max_mc_error",
        )  # fmt: skip
        problems += [f"segment {result.name}: {problem}" for problem in found]
    return problems


def _unmet_by(name: str, most: float, after: Metrics) -> Iterator[str]:
    """Whether a single group is above its limit on a grid, or cannot be measured."""
    places = {group.group: place for place, group in enumerate(after.groups)}
    if name not in places:
        near = difflib.get_close_matches(name, places, 1)
        mean = f", did you mean {near[0]!r}?" if near else "; the groups are named in the metrics table"
        yield f"gate.groups: there is no group {name!r}{mean}"
        return
    found = after.groups[places[name]]
    if found.too_small:
        yield (
            f"gate.groups: the MC error of {name} cannot be measured: its {found.rows} held-out rows have no "
            "weight or are fewer than evaluation.min_group_rows"
        )
        return
    for m, errors in after.by_level.items():
        if (error := float(errors.mc[places[name]])) > most:
            yield f"MC error {error:.5f} of group {name} at {m} levels is above gate.groups, {most:g}"


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

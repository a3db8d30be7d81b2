"""The pictures of a report, in its order, each with words for those who cannot see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcspark.report import plots
from mcspark.report.facts import RunFacts, number
from mcspark.report.plots.corrections import largest
from mcspark.report.plots.maps import MAX_GROUPS
from mcspark.report.plots.style import short
from mcspark.report.svg import Picture, picture

SECTIONS = ("grid", "reliability", "gaps", "corrections", "training")
WORST = 3
"""Groups that get a reliability diagram of their own."""
MAX_STAGES = 3
"""Stages whose correction is drawn."""


def pictures(facts: RunFacts) -> Mapping[str, list[Picture]]:
    """By section, see :data:`SECTIONS`."""
    if facts.standing == "unknown":
        return {name: [] for name in SECTIONS}
    return {
        "grid": [picture(plots.error_by_grid(facts.table), "grid", _grid_words(facts))],
        "reliability": _reliability(facts),
        "gaps": _gaps(facts),
        "corrections": _corrections(facts),
        "training": _training(facts),
    }


def _grid_words(facts: RunFacts) -> str:
    table, lines = facts.table, []
    for m in table.grids:
        before, after = (number(v) for v in facts.change("mc_error", m))
        floor = number(facts.last("noise_floor", m))
        error = f"{before} before and {after} after" if facts.calibrated else before
        blind = " (blind to these scores)" if m in table.lead.blind_grids else ""
        lines.append(f"{m} levels{blind}: {error}, noise floor {floor}")
    return f"Line chart of the multicalibration error against the number of levels. {'; '.join(lines)}."


def _reliability(facts: RunFacts) -> list[Picture]:
    table, found = facts.table, []
    for place, group in enumerate([None, *table.worst_first()[:WORST]]):
        drawn = plots.reliability(facts.table, group)
        words = [f"Reliability diagram of {short(group)}: mean label against mean score in each level."]
        for stage in table.stages:
            levels = table.by_level(stage, group)
            if len(levels):
                gap = (levels["mean_score"] - levels["mean_label"]).abs()
                mean = float((gap * levels["share"]).sum() / levels["share"].sum())
                words.append(f"{stage.capitalize()}, labels lie {number(mean)} from the diagonal on average.")
        found.append(picture(drawn, f"reliability-{place}", " ".join(words)))
    return found


def _gaps(facts: RunFacts) -> list[Picture]:
    scale = plots.gap_scale(facts.table)
    shown = min(len(facts.table.worst_first()), MAX_GROUPS)
    found = []
    for stage in facts.table.stages:
        mean = facts.table.gaps(stage).abs().stack().mean()
        words = (
            f"Heat map of mean score less mean label {stage}, {shown} groups down, worst first, and "
            f"{facts.grid} levels across, on a scale from −{scale:g} to +{scale:g}; the mean absolute gap is "
            f"{number(float(mean))}."
        )
        found.append(picture(plots.gap_map(facts.table, stage, scale), f"gaps-{stage}", words))
    return found


def _corrections(facts: RunFacts) -> list[Picture]:
    found: list[Picture] = []
    if facts.curves is None:
        return found
    for stage in sorted(facts.curves["stage"].unique())[:MAX_STAGES]:
        names = ", ".join(short(name) for name in largest(facts.curves, stage))
        words = (
            f"Step curves over the score: the correction that every row gets in stage {stage + 1}, and what "
            f"members of the groups with the largest corrections get on top: {names or 'none'}."
        )
        drawn = plots.correction_curves(facts.curves, stage)
        found.append(picture(drawn, f"curves-{stage + 1}", words))
        # Trees that learn from columns have no curve of their own for an intersection.
        drawn_of = set(facts.curves["group"].dropna())
        groups = [name for name in facts.table.worst_first() if name in drawn_of][:MAX_GROUPS]
        words = (
            f"Heat map of the correction of {len(groups)} groups, down, over the score, across, in stage "
            f"{stage + 1}."
        )
        drawn = plots.correction_map(facts.curves, groups, stage)
        found.append(picture(drawn, f"corrections-{stage + 1}", words))
    return found


def _training(facts: RunFacts) -> list[Picture]:
    found: list[Picture] = []
    if facts.training is None or facts.training.empty:
        return found
    links = [s["link"] for s in _stages(facts)]
    for stage in sorted(facts.training["stage"].unique())[:MAX_STAGES]:
        part = facts.training[facts.training["stage"] == stage]
        first, last = part.iloc[0], part.iloc[-1]
        words = (
            f"Line chart of the loss against the number of trees in stage {stage + 1}: on held-out rows from "
            f"{number(first['early_stopping'])} without trees to {number(last['early_stopping'])} with "
            f"{int(last['trees'])}, on the rows learned from to {number(last['fit'])}."
        )
        loss = "cross-entropy" if links[stage : stage + 1] == ["logit"] else "squared loss"
        found.append(picture(plots.training(facts.training, stage, loss), f"training-{stage + 1}", words))
    return found


def _stages(facts: RunFacts) -> list[Mapping[str, Any]]:
    return list(facts.summary.get("stages") or ())

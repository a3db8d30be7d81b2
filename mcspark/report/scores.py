"""Reports of several scores: one page and card for each, and a page and card over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mcspark.report.facts import RunFacts, number
from mcspark.report.page import environment

_METRICS = {
    "worst_group_smece": "Worst group's smECE",
    "loss": "Squared loss",
    "log_loss": "Log loss",
    "auc": "AUC",
}


def summary_of_score(summary: Mapping[str, Any], score: str) -> dict[str, Any]:
    """What the summary of a run on one of its scores alone would say, and which score that is.

    Parameters
    ----------
    summary : mapping
        Summary or manifest of a run of several scores.
    score : str
    """
    own = summary["scores"][score]
    rest = {key: value for key, value in summary.items() if key != "scores"}
    shared = {name: path for name, path in (summary.get("paths") or {}).items() if name != "model"}
    paths = {**shared, **(own.get("paths") or {})}
    return {**rest, **own, "score": score, "paths": paths}


class ScorePage(NamedTuple):
    """The report of one score.

    Parameters
    ----------
    score : str
    facts : RunFacts
    address : str
        Of its page, seen from the page over all.
    """

    score: str
    facts: RunFacts
    address: str

    @property
    def row(self) -> list[str]:
        """Its numbers in the table of all scores."""
        facts = self.facts
        error = _changed(facts, *facts.lead.metric("mc_error"))
        by = "no grid" if facts.lead.levels is None else f"{facts.grid} levels"
        floor, p_value = number(facts.leading("noise_floor")), number(facts.leading("p_value"), 3)
        rest = [_changed(facts, metric) for metric in _METRICS]
        return [f"{facts.error_name}, {by}", error, floor, p_value, facts.worst_group or "–", *rest]


HEAD = ("Error", "Before → after", "Noise floor", "p-value", "Worst group", *_METRICS.values())


def _changed(facts: RunFacts, metric: str, levels: int | None = None) -> str:
    before, after = facts.change(metric, levels)
    return f"{number(before)} → {number(after)}" if facts.calibrated else number(before)


def render_scores(summary: Mapping[str, Any], pages: Sequence[ScorePage], *, markdown: bool = False) -> str:
    """The page over all scores, or, in Markdown, its card."""
    template = "scores.md.j2" if markdown else "scores.html.j2"
    return (
        environment(markdown=markdown)
        .get_template(template)
        .render(
            summary=summary, pages=pages, together=_together(summary.get("classes")),
            head=HEAD if pages[0].facts.calibrated else _BEFORE,
        )
    )  # fmt: skip


def _together(classes: Mapping[str, Any] | None) -> str:
    """Metrics of the classes' scores as one vector; empty where there are no classes."""
    if not classes:
        return ""
    loss = classes["log_loss"]["test"]
    named = "; ".join(f"{name}: {column}" for name, column in classes["scores"].items())
    if "projected" not in classes:
        return f"Scores of {len(classes['scores'])} classes ({named}): log loss {number(loss['before'])}."
    reported = f"log loss {number(loss['before'])} → {number(loss['after'])}"
    done = (
        "calibrated class by class and projected to sum to 1"
        if classes["projected"]
        else "left as they came, for the projected vector was no better on the early-stopping rows"
    )
    return f"Scores of {len(classes['scores'])} classes ({named}), {done}: {reported}."


_BEFORE = tuple("Value" if name == "Before → after" else name for name in HEAD)

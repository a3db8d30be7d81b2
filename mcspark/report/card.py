"""The model card: the report in Markdown, for repositories, registries and reviews."""

from __future__ import annotations

from mcspark.report.facts import RunFacts
from mcspark.report.page import drift_of, environment

WORST = 10
"""Groups in the card's table."""


def card(facts: RunFacts) -> str:
    """The card."""
    groups = facts.groups()
    template = environment(markdown=True).get_template("card.md.j2")
    return template.render(
        facts=facts,
        summary=facts.summary,
        groups=groups.head(WORST).to_dict("records"),
        n_groups=len(groups),
        drift=drift_of(facts),
    )

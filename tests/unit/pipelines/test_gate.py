"""The gate: limits hold on every grid, and an error may grow within noise and no further."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mcspark.config import Gate
from mcspark.pipelines.gate import refusal, unmet


def metrics(error, *, expected=0.004, chance=0.006, levels=(10, 20)):
    """As `measure` gives it: the error on every grid, and what a perfectly calibrated score would show."""
    errors = SimpleNamespace(mc_error=error, worst_group="A")
    floor = SimpleNamespace(expected=expected, quantiles={0.05: 0.002, 0.5: expected, 0.95: chance})
    return SimpleNamespace(by_level=dict.fromkeys(levels, errors), floors=dict.fromkeys(levels, floor))


@pytest.mark.parametrize(
    ("old", "new", "passes"),
    [
        (0.0200, 0.0100, True),  # better
        (0.0030, 0.0059, True),  # worse, but no more than chance shows
        (0.0200, 0.0219, True),  # worse by less than chance moves it, 0.006 - 0.004
        (0.0200, 0.0221, False),
        (0.0030, 0.0061, False),
        (None, 0.5, True),
        (0.5, None, True),
    ],
)
def test_worse_beyond_noise(old, new, passes):
    assert (unmet(Gate(), metrics(old), metrics(new)) == []) is passes
    assert unmet(Gate(must_improve=False), metrics(old), metrics(new)) == []


def test_the_limit_holds_on_every_grid_even_for_a_better_score():
    gate = Gate(max_mc_error=0.01)
    assert unmet(gate, metrics(0.5), metrics(0.01)) == []
    problems = unmet(gate, metrics(0.5), metrics(0.0101))
    assert len(problems) == 2
    assert "at 10 levels (worst group A) is above gate.max_mc_error 0.01" in problems[0]


def test_the_refusal_names_where_the_candidate_is():
    error = refusal(["too bad"], {"output": "out_refused", "report": "report_refused.html"})
    assert "kept in out_refused, its report is report_refused.html" in str(error)
    assert (error.exit_code, error.paths["output"]) == (4, "out_refused")
    assert "kept" not in str(refusal(["too bad"], {}))

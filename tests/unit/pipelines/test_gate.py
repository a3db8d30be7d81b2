"""The gate: limits hold on every grid, and an error may grow within noise and no further."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mcspark.config import Gate
from mcspark.core.metrics.lead import FullestLevel, Lead
from mcspark.pipelines.judging.gate import refusal, unmet, unmet_by_segment

ONE = (SimpleNamespace(group="A", rows=1, too_small=False),)
TWO = (*ONE, SimpleNamespace(group="B", rows=2, too_small=True))


def metrics(
    error,
    *,
    bias=0.0,
    expected=0.004,
    chance=0.006,
    levels=(10, 20),
    rows=9,
    loss=0.1,
    groups=ONE,
    blind=(),
    smece=0.1,
):
    """As `measure` gives it: the error on every grid, and what a perfectly calibrated score would show."""
    errors = SimpleNamespace(mc_error=error, worst_group="A", mc=[error, 0.0])
    quantiles = {0.05: 0.002, 0.5: expected, 0.95: chance}
    floor = SimpleNamespace(observed=error, expected=expected, quantiles=quantiles)
    bias = SimpleNamespace(observed=bias, expected=expected, quantiles=quantiles)
    return SimpleNamespace(
        by_level=dict.fromkeys(levels, errors), floors={**dict.fromkeys(levels, floor), None: bias},
        rows=rows, loss=loss, groups=groups, lead=Lead(20, blind),
        smooth=SimpleNamespace(worst=smece, worst_group="A"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "passes"),
    [
        (0.0200, 0.0100, True),  # better
        (0.0030, 0.0059, True),  # worse, but no more than chance shows
        (0.0200, 0.0219, True),  # worse by less than chance moves it, 0.006 - 0.004
        (0.0200, 0.0221, False),
        (0.0030, 0.0061, False),
        (None, 0.5, False),  # not measured is not passed
        (0.5, None, False),
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


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"rows": 0, "loss": None}, "no labelled row is held out"),
        ({"loss": None}, "the 9 held-out rows have no weight"),
        ({"groups": ()}, "there is no group"),
        ({}, "fewer held-out rows than evaluation.min_group_rows; the largest, A, has 1"),
    ],
)
def test_what_cannot_be_measured_is_not_passed(found, words):
    nothing = metrics(None, **found)
    both = unmet(Gate(max_mc_error=0.5), nothing, nothing)
    assert len(both) == 1
    assert both[0].startswith("gate.max_mc_error and gate.must_improve cannot be measured: ")
    assert words in both[0]
    assert unmet(Gate(), nothing, nothing, changes=False) == []
    assert unmet(Gate(must_improve=False), nothing, nothing) == []
    assert len(unmet(Gate(max_mc_error=0.5), nothing, nothing, changes=False)) == 1


def test_a_grid_that_is_blind_hides_no_score_that_got_worse():
    """All scores in one level before and after: the MC error is the same to the last digit."""
    problems = unmet(Gate(), metrics(0.02, bias=0.001), metrics(0.02, bias=0.009))
    assert len(problems) == 1
    assert problems[0].startswith("MA error 0.00900 of the score itself was 0.00100 before")


def test_an_error_on_a_blind_grid_is_called_that():
    blind = (FullestLevel(10, 0, 1.0), FullestLevel(20, 0, 0.998))
    problems = unmet(Gate(max_mc_error=0.01), metrics(0.049, blind=blind), metrics(0.049, blind=blind))
    assert problems[1] == (
        "MC error 0.04900 at 20 levels (worst group A), blind to these scores (99.8 % in [0, 0.05) of 20 "
        "levels), is above gate.max_mc_error 0.01"
    )


def test_the_limit_of_a_group_holds_on_every_grid_for_it_alone():
    found = metrics(0.02, groups=TWO)
    problems = unmet(Gate(groups={"A": 0.019}), metrics(0.5), found)
    assert [p[:47] for p in problems] == [
        f"MC error 0.02000 of group A at {m} levels is abo" for m in (10, 20)
    ]
    assert unmet(Gate(groups={"A": 0.02}), metrics(0.5), found) == []


def test_the_limit_of_a_group_that_cannot_be_measured_is_not_met():
    found = metrics(0.0, groups=TWO)
    (small,) = unmet(Gate(groups={"B": 1.0}), metrics(0.5), found)
    assert "of B cannot be measured: its 2 held-out rows" in small
    (none,) = unmet(Gate(groups={"a": 1.0, "A": 0.5}), metrics(0.5), found)
    assert none.startswith("gate.groups: there is no group 'a'")
    longer = metrics(0.0, groups=(SimpleNamespace(group="region=north", rows=1, too_small=False),))
    assert "did you mean 'region=north'?" in unmet(Gate(groups={"region=nort": 1.0}), longer, longer)[0]


def test_the_limit_of_smece_is_that_of_the_worst_group():
    found = metrics(0.01, smece=0.031)
    assert unmet(Gate(max_smece=0.03), metrics(0.5), found) == [
        "smECE 0.03100 of group A is above gate.max_smece 0.03"
    ]
    assert unmet(Gate(max_smece=0.031), metrics(0.5), found) == []
    nothing = metrics(None, smece=None)
    (problem,) = unmet(Gate(max_smece=0.5, must_improve=False), nothing, nothing)
    assert problem.startswith("gate.max_smece cannot be measured")


def test_among_many_calibrators_chance_reaches_farther():
    """0.0025 worse is beyond the 0.002 of one; of 200, chance explains 3.48 standard deviations, not 1.64."""
    worse = (metrics(0.0200), metrics(0.0225))
    assert unmet(Gate(), *worse)
    assert unmet(Gate(), *worse, among=200) == []
    assert unmet(Gate(), metrics(0.0200), metrics(0.0243), among=200)


def test_each_segment_with_its_own_calibrator_is_asked():
    def result(name, error, *, own=True):
        before, after = metrics(0.02), metrics(error)
        return SimpleNamespace(name=name, own=own, trees=3, before=before, after=after)

    results = [result("a", 0.01), result("b", 0.5), result("c", 0.5, own=False)]
    config = SimpleNamespace(gate=Gate(max_mc_error=1e-9), segments=SimpleNamespace(max_mc_error=None))
    problems = unmet_by_segment(config, results)
    assert len(problems) == 2
    assert all(problem.startswith("segment b: MC error 0.5") for problem in problems)
    config.gate, config.segments.max_mc_error = Gate(must_improve=False), 0.005
    told = unmet_by_segment(config, results)
    assert [problem.partition(":")[0] for problem in told] == ["segment a"] * 2 + ["segment b"] * 2
    assert all("above segments.max_mc_error 0.005" in problem for problem in told)

"""Scored rows without attributes, and attributes without scores."""

from __future__ import annotations

import pandas as pd
import pytest

LOST = 7


@pytest.fixture
def torn(world):
    """Seven scored rows lack their attributes, five rows of attributes lack their score."""
    stray = pd.DataFrame({"house": "zz", "person": range(5), "sex": 1, "age": 40, "job": "a"})
    world.change("attributes", lambda t: pd.concat([t.iloc[LOST:], stray]))
    return world


def policy(world, name):
    return [{"path": str(world.root / "attributes"), "key": ["house", "person"], "on_unmatched": name}]


def test_unknown_scores_them_as_members_of_no_group(torn, people):
    done = torn.ran(attributes=policy(torn, "unknown"))
    assert (done.summary["rows"]["scored"], done.summary["rows"]["rejected"]) == (len(people), 0)
    assert list(done.summary["unmatched"].values()) == [LOST]
    check_log(done)


def test_they_are_in_no_group_of_what_is_null_either(torn, people):
    groups = {"predicates": [{"name": "no job", "where": "job IS NULL"}, {"name": "all", "where": "true"}]}
    torn.write("scored", people[["house", "person", "score", "label", "w"]].assign(part="test"))
    done = torn.ran("audit", groups=groups, split={"column": "part"}, attributes=policy(torn, "unknown"))
    table = pd.read_parquet(done.summary["paths"]["metrics"], partitioning=None)
    rows = table[table["metric"] == "group_rows"].set_index("group")["value"]
    assert (rows["no job"], rows["all"]) == (0, len(people))


def test_reject_keeps_them_with_their_reason_and_the_report_counts_them(torn, people):
    report = torn.root / "report.html"
    done = torn.ran(
        "calibrate",
        attributes=policy(torn, "reject"),
        calibrator={"method": "none"},
        report={"path": str(report)},
    )
    assert done.summary["rows"]["rejected"] == LOST
    assert done.summary["rejected_by_reason"] == {"unmatched": LOST}
    assert done.summary["rows"]["labelled"] == len(people) - LOST
    assert list(torn.rejected(done)["house"]) == list(people["house"][:LOST])
    assert "unmatched" in report.read_text()
    check_log(done)


def test_fail_refuses_the_run(torn):
    torn.refused(
        rf"no attributes for {LOST} scored row\(s\), such as .*set on_unmatched",
        attributes=policy(torn, "fail"),
    )


def test_too_many_are_refused(torn):
    torn.refused(
        rf"{LOST} of 240 rows rejected \(2.92%, allowed 2.00%\): unmatched {LOST}",
        attributes=policy(torn, "reject"),
        max_rejected_share=0.02,
    )


def test_keys_of_another_spelling_match_nothing_and_are_refused_with_both(world):
    """Identifiers 1 beside 1.0, as a column with a gap is written: once a run without attributes, exit 0."""
    world.change("attributes", lambda t: t.assign(house=t["house"] + ".0"))
    for name in ("unknown", "reject"):
        world.refused(
            r"no attributes for any of 240 scored rows; keys are \(house='00\d+', .* and "
            r"\(house='00\d+\.0', .*one side ends in \.0",
            job="audit",
            attributes=policy(world, name),
        )


def test_few_matches_are_a_warning_with_keys_of_both_sides(world):
    world.change("attributes", lambda t: t.assign(house=t["house"].where(t.index < 100, t["house"] + " ")))
    done = world.ran("audit", attributes=policy(world, "unknown"))
    assert list(done.summary["unmatched"].values()) == [140]
    assert "most scored rows have no attributes" in done.log


def check_log(done):
    line = next(x for x in done.log.splitlines() if "attributes without scores are not used" in x)
    assert "rows=5" in line

"""A key twice in the scored table."""

from __future__ import annotations

import pandas as pd


def twice(table: pd.DataFrame) -> pd.DataFrame:
    """Three keys on two rows each, the second one with another score."""
    again = table.iloc[:3].assign(score=0.5)
    return pd.concat([table.assign(day="2026-01-01"), again.assign(day="2026-01-02")])


def test_it_is_refused_with_counts_and_keys(world):
    world.change("scored", twice)
    done = world.refused(r"3 key\(s\) \(house, person\) are on 6 rows, such as \(house='000000', person=1\)")
    assert "scored.dedupe: {latest_by: column}" in done.error


def test_the_latest_row_may_stand_and_the_others_are_kept_among_the_rejected(world, people):
    world.change("scored", twice)
    done = world.ran(scored={"dedupe": {"latest_by": "day"}})
    rows = done.summary["rows"]
    assert (rows["in"], rows["scored"], rows["rejected"]) == (len(people) + 3, len(people), 3)
    assert (world.output(done)["score"][:3] == 0.5).all()
    assert [list(r) for r in world.rejected(done)["reasons"]] == [["superseded"]] * 3
    assert done.summary["rejected_by_reason"] == {"superseded": 3}

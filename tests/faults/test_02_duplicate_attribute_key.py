"""A key twice in an attribute table: a join would multiply the scored rows."""

from __future__ import annotations

import pandas as pd


def test_it_is_refused_before_joining(world):
    world.change("attributes", lambda t: pd.concat([t, t.iloc[:2].assign(sex=1)]))
    world.refused(r"attributes: 2 key\(s\) .* are on 4 rows, such as .*keep one row a key")


def test_of_a_second_table_too(world, people):
    world.write("more", pd.concat([people[KEY_AND_JOB], people[KEY_AND_JOB].iloc[5:6]]))
    world.change("attributes", lambda t: t.drop(columns="job"))
    tables = [{"path": str(world.root / name), "key": ["house", "person"]} for name in ("attributes", "more")]
    world.refused(r"more: 1 key\(s\)", attributes=tables)
    world.write("more", people[KEY_AND_JOB])
    done = world.ran(attributes=tables)
    assert done.summary["rows"]["scored"] == len(people)


KEY_AND_JOB = ["house", "person", "job"]

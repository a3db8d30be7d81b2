"""Groups and signatures: names, packing, intersections, and files that are not trusted."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcspark.core.cells.groups import WORD_BITS, Family, FittedGroups, distinct_rows

RACE = Family("value", "RAC1P", (1, 2, 9), columns=("RAC1P",), seen=(1, 2, 3, 9))
AGE = Family("bins", "AGEP", (0, 2), bins=(0.0, 18.0, 65.5, 120.0), columns=("AGEP",), seen=(0, 1, 2))
JOB = Family("divide", "OCCP", (0, 47), divide_by=100.0, columns=("OCCP",), seen=(0, 47))
OLD = Family("predicate", "old women", (1,), where="(`SEX` = 2)", columns=("AGEP", "SEX"))
GROUPS = FittedGroups((RACE, AGE, JOB, OLD), ((0, 3), (5, 7)), (("RAC1P=3", "share 0.001"),))


def test_names_say_what_a_group_is():
    assert GROUPS.names == (
        "RAC1P=1", "RAC1P=2", "RAC1P=9", "AGEP=[0,18)", "AGEP=[65.5,120)", "OCCP/100=0", "OCCP/100=47",
        "old women", "RAC1P=1 & AGEP=[0,18)", "OCCP/100=0 & old women",
    )  # fmt: skip
    assert GROUPS.columns == ("RAC1P", "AGEP", "OCCP", "SEX")
    assert GROUPS.family_of_group.tolist() == [0, 0, 0, 1, 1, 2, 2, 3]


def test_neighbouring_edges_have_names_of_their_own():
    edges = (20240101.0, 20240102.0, 20240103.0, 20240103.0000001)
    assert FittedGroups((Family("bins", "DAY", (0, 1, 2), bins=edges),)).names == (
        "DAY=[20240101,20240102)", "DAY=[20240102,20240103)", "DAY=[20240103,20240103.0000001)",
    )  # fmt: skip


def test_membership_of_codes():
    codes = np.array([[0, 0, 0, 0], [1, 1, 0, 1], [3, 2, 1, 1], [2, 0, 2, 0]])
    expected = [
        "..........",
        "#..#...##.",
        "..#.##.#.#",
        ".#....#...",
    ]
    found = GROUPS.membership(GROUPS.words(codes))
    assert ["".join(".#"[int(x)] for x in row) for row in found] == expected
    assert np.array_equal(GROUPS.codes(GROUPS.words(codes)), codes)


@example([70] * 30, random.Random(0))
@given(st.lists(st.integers(0, 70), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_signatures_and_codes_are_one_to_one(sizes, source):
    families = tuple(Family("value", f"c{i}", tuple(range(n))) for i, n in enumerate(sizes))
    groups = FittedGroups(families)
    codes = np.array([[source.randint(0, n) for n in sizes] for _ in range(5)])
    words = groups.words(codes)
    assert np.array_equal(groups.codes(words), codes)
    assert words.min() >= 0
    bits = sum(f.bits for f in families)
    assert words.shape[1] >= -(-bits // WORD_BITS)
    assert all(0 <= p.shift <= p.shift + p.bits <= WORD_BITS for p in groups.layout)
    member = groups.membership(words)
    assert member.sum() == np.count_nonzero(codes)


def test_no_families_is_one_word_and_no_group():
    groups = FittedGroups(())
    assert groups.n_words == 1
    assert groups.membership(np.zeros((3, 1), dtype=np.int64)).shape == (3, 0)


@pytest.mark.parametrize("columns", [1, 2])
def test_distinct_rows_in_order(columns):
    words = np.array([[5, 1], [2, 9], [5, 1], [2, 3]])[:, :columns]
    distinct, place = distinct_rows(words)
    assert np.array_equal(distinct[place], words)
    assert [tuple(d) for d in distinct.tolist()] == sorted({tuple(w) for w in words.tolist()})


def test_intersections_that_pass_the_share_and_say_something_new():
    families = (
        Family("value", "a", (1, 2)),
        Family("value", "b", (1, 2)),
        Family("predicate", "same as a=2", (1,), where="a = 2"),
    )
    groups = FittedGroups(families)
    # (a, b, predicate): a=2 and the predicate are one set of rows.
    codes = np.array([[1, 1, 0], [1, 2, 0], [2, 1, 1], [2, 2, 1]])
    weight = np.array([40.0, 10.0, 30.0, 20.0])
    found = groups.with_pairs(groups.words(codes), weight, min_share=0.1)
    assert found.names[5:] == (
        "a=1 & b=1",
        "a=2 & b=1",
        "a=2 & b=2",
        "b=1 & same as a=2",
        "b=2 & same as a=2",
    )
    strict = groups.with_pairs(groups.words(codes), weight, min_share=0.2)
    assert strict.names[5:] == ("a=1 & b=1", "a=2 & b=1", "b=1 & same as a=2")
    member = found.membership(found.words(codes))
    assert np.array_equal(member[:, 5], member[:, 0] & member[:, 2])


def test_plain_form_survives_json():
    assert FittedGroups.from_dict(json.loads(json.dumps(GROUPS.to_dict()))) == GROUPS


def _changed(family=None, **changes):
    plain = json.loads(json.dumps(GROUPS.to_dict()))
    (plain if family is None else plain["families"][family]).update(changes)
    return plain


@pytest.mark.parametrize(
    "plain",
    [
        _changed(0, kind="reflect"),
        _changed(0, categories=[1, 2, True]),
        _changed(0, categories=[1, 2, 9.5]),
        _changed(0, categories=[1, 2, "9"]),
        _changed(0, categories=[1, 1, 2]),
        _changed(0, more=1),
        _changed(1, categories=[0, 3]),
        _changed(1, categories=[0, -1]),
        _changed(1, bins=None),
        _changed(1, bins=[0, 18, 18, 120]),
        _changed(1, bins=[0, 18, float("nan"), 120]),
        _changed(2, divide_by=None),
        _changed(2, divide_by=0),
        _changed(2, divide_by=float("inf")),
        _changed(2, categories=["0", "47"]),
        _changed(3, where=None),
        _changed(3, categories=[1, 2]),
        _changed(3, column="RAC1P=1"),
        _changed(pairs=[[0, 8]]),
        _changed(pairs=[[3, 0]]),
        _changed(pairs=[[-1, 0]]),
        _changed(pairs=[[0, 3], [0, 3]]),
        _changed(families=None),
        _changed(families=[[]]),
    ],
)  # fmt: skip
def test_untrusted_forms_are_refused(plain):
    with pytest.raises((ValueError, TypeError, KeyError)):
        FittedGroups.from_dict(plain)


def test_more_groups_than_are_allowed():
    many = FittedGroups((Family("value", "c", tuple(range(5000))),))
    with pytest.raises(ValueError, match="5000 groups"):
        FittedGroups.from_dict(many.to_dict())

"""Names of groups that people read: titles and labels for ids, no two groups with one name."""

from __future__ import annotations

import pytest

from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.core.cells.readable import readable_names

RACE = Family("value", "RAC1P", title="Race", labels=(("1", "White"), ("2", "White"), ("3", "R & D")))
GRADES = (("1", "None"), ("0", "Baby"), ("2", "Grade 1"))
SCHOOL = Family("bins", "SCHL", bins=(0.0, 2.0, 3.0), title="Schooling", labels=GRADES)
AGE = Family("bins", "AGEP", bins=(0.0, 18.0, 99.5), labels=(("[0,18)", "under 18"),))
JOB = Family("divide", "OCCP", divide_by=100.0, title="Work", labels=(("47", "Sales"),))
PLAIN = Family("value", "dept")
OLD = Family("predicate", "old & wise", (1,), where="`a` = 1", columns=("a",))
FAMILIES = (RACE, SCHOOL, AGE, JOB, PLAIN, OLD)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("RAC1P=3", "Race: R & D"),
        ("RAC1P=9", "Race: 9"),
        ("SCHL=[0,2)", "Schooling: Baby to None"),
        ("SCHL=[2,3)", "Schooling: Grade 1"),
        ("AGEP=[0,18)", "AGEP: under 18"),
        ("AGEP=[18,99.5)", "AGEP: [18,99.5)"),
        ("OCCP/100=47", "Work: Sales"),
        ("OCCP/10=47", "OCCP/10=47"),
        ("dept=1", "dept=1"),
        ("dept=R & D", "dept=R & D"),
        ("old & wise", "old & wise"),
        ("RAC1P=3 & OCCP/100=47", "Race: R & D & Work: Sales"),
        ("dept=R & D & RAC1P=1", "dept=R & D & Race: White"),
        ("OCCP/100=47 & old & wise", "Work: Sales & old & wise"),
        ("unknown=1", "unknown=1"),
    ],
)
def test_an_id_is_read_by_title_and_label(name, words):
    assert readable_names(FAMILIES, [name]) == {name: words}


def test_two_groups_of_the_same_words_keep_their_ids_beside_them():
    assert readable_names(FAMILIES, ["RAC1P=1", "RAC1P=2", "RAC1P=3"]) == {
        "RAC1P=1": "Race: White (RAC1P=1)", "RAC1P=2": "Race: White (RAC1P=2)", "RAC1P=3": "Race: R & D",
    }  # fmt: skip


def test_titles_and_labels_are_saved_with_the_groups_and_checked():
    groups = FittedGroups((Family("value", "s", (1,), columns=("s",), title="Sex", labels=(("1", "Male"),)),))
    plain = groups.to_dict()
    assert FittedGroups.from_dict(plain) == groups
    assert not {"title", "labels"} & set(FittedGroups((PLAIN,)).to_dict()["families"][0])
    for wrong in (
        {"title": 3},
        {"title": "a\nb"},
        {"labels": [["1", 2]]},
        {"labels": [["1"]]},
        {"labels": 5},
    ):
        with pytest.raises((ValueError, TypeError)):
            FittedGroups.from_dict({**plain, "families": [{**plain["families"][0], **wrong}]})

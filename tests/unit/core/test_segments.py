"""The table of segments, and calibrators by segment as one, against a look-up row by row."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.core.model.stages import Stages
from mcspark.core.segments import Part, SegmentedCalibrator, SegmentTable, with_columns

VALUES = [("a", 12), ("a1", 2), ("", -5), ("DE", 2), ("de", 2)]


class Plus:
    """Adds a number, and a further one a group of the row, in the order of its own groups."""

    def __init__(self, start: float, steps: list[float]) -> None:
        self.start, self.steps = start, np.array(steps)

    def apply_signatures(self, score, signature, membership):
        return score + self.start + (membership @ self.steps)[signature]

    def to_dict(self):
        return {"start": self.start}


def table() -> SegmentTable:
    return SegmentTable.of_values(["place", "kind"], VALUES)


def test_every_row_finds_its_segment_and_no_other():
    found = table()
    assert [found.values(i) for i in range(len(found))] == VALUES
    places = {value: i for i, value in enumerate(VALUES)}
    families = [("", "DE", "a", "a1", "de"), (-5, 2, 12)]
    assert [f.categories for f in found.families] == families
    for i, place in enumerate([None, *families[0]]):
        for j, kind in enumerate([None, *families[1]]):
            key = found.keys(np.array([[i, j]]))
            assert found.numbers(key)[0] == places.get((place, kind), -1)


def test_the_largest_table_has_keys_of_64_bits():
    values = [(*[i] * 6,) for i in range(1000)]
    found = SegmentTable.of_values(list("abcdef"), values)
    assert np.array_equal(found.numbers(found.keys(found.codes)), np.arange(1000))
    assert found.keys(found.codes).min() > 0


def test_names_that_are_alike_have_a_number():
    found = SegmentTable.of_values(["a", "b"], [("x & b=1", "2"), ("x", "1 & b=2"), ("x", "y")])
    assert found.names == ("a=x & b=1 & b=2 (segment 0)", "a=x & b=1 & b=2 (segment 1)", "a=x & b=y")


def test_its_plain_form_comes_back_and_no_other_is_read():
    plain = table().to_dict()
    again = SegmentTable.from_dict(copy.deepcopy(plain))
    assert (again.names, again.columns) == (table().names, ("place", "kind"))
    large = SegmentTable.of_values(list("abcdef"), [(*[i] * 6,) for i in range(1000)])
    assert SegmentTable.from_dict(large.to_dict()).names == large.names
    for change, message in (
        (lambda p: p.update(codes=[]), "1 to 1000 segments"),
        (lambda p: p.update(codes=[[1, 1]] * 2), "the same values"),
        (lambda p: p.update(codes=[[1]]), "one value a column"),
        (lambda p: p.update(codes=[[0, 1]]), "none of its column"),
        (lambda p: p.update(codes=[[1, 9]]), "none of its column"),
        (lambda p: p.update(codes=[[1, True]]), "whole number"),
        (lambda p: p.update(families=[]), "1 to 6 columns"),
        (lambda p: p["families"].append(p["families"][0]), "one name"),
        (lambda p: p["families"][1].update(kind="divide", divide_by=2.0), "values alone"),
    ):
        wrong = copy.deepcopy(plain)
        change(wrong)
        with pytest.raises(ValueError, match=message):
            SegmentTable.from_dict(wrong)


def groups(*categories: tuple, pairs=()) -> FittedGroups:
    """Groups by kind and sex: each calibrator has its own."""
    kind, sex = categories
    return FittedGroups((
        Family("value", "kind", kind, columns=("kind",)), Family("value", "sex", sex, columns=("sex",)),
    ), pairs)  # fmt: skip


def test_each_row_is_scored_by_the_calibrator_and_the_groups_of_its_segment():
    rng = np.random.default_rng(0)
    pooled = Part(groups((2, 12), ("f", "m")), Plus(0.5, [1, 2, 4, 8]))
    parts = [Part(groups((12,), ("m",)), Plus(10.0 * i, [i, -i])) for i in range(1, 5)]
    parts.append(Part(groups((), ("f", "x"), pairs=((0, 1),)), Plus(70.0, [0.1, 0.2, 0.4])))
    model = SegmentedCalibrator(table(), pooled, parts)
    places, kinds = (None, "", "DE", "a", "a1", "de", "z"), (None, -5, 2, 12, 99)
    sexes = (None, "f", "m", "x")
    rows = [(places[i], kinds[j], sexes[k]) for i, j, k in rng.integers(0, (7, 5, 4), (4000, 3))]
    score = rng.random(len(rows))
    words = model.groups.words(codes_of(model.groups, rows))
    distinct, signature = np.unique(words, axis=0, return_inverse=True)
    found = model.apply_signatures(score, signature.reshape(-1), model.groups.membership(distinct))
    places_of = {value: i for i, value in enumerate(VALUES)}
    for f, (place, kind, sex), value in zip(score, rows, found, strict=True):
        number = places_of.get((place, kind))
        part = pooled if number is None else parts[number]
        inside = [kind == c for c in part.groups.families[0].categories]
        inside += [sex == c for c in part.groups.families[1].categories]
        inside += [inside[a] and inside[b] for a, b in part.groups.pairs]
        assert value == pytest.approx(f + part.calibrator.start + np.dot(inside, part.calibrator.steps))
    assert len(model.apply_signatures(np.zeros(0), np.zeros(0, int), model.groups.membership(distinct))) == 0


def codes_of(known: FittedGroups, rows) -> np.ndarray:
    columns = {"place": 0, "kind": 1, "sex": 2}
    places = [{c: i for i, c in enumerate(f.categories, start=1)} for f in known.families]
    at = [columns[f.column] for f in known.families]
    return np.array([[p.get(row[i], 0) for p, i in zip(places, at, strict=True)] for row in rows])


def test_a_segment_column_that_is_a_group_column_is_carried_once():
    families, places = with_columns(groups((), ()).families, ["place", "kind"])
    assert [f.column for f in families] == ["kind", "sex", "place"]
    assert places == [2, 0]
    bins = (Family("bins", "kind", bins=(0.0, 1.0), columns=("kind",)),)
    assert len(with_columns(bins, ["kind"])[0]) == 2


def test_calibrators_of_other_definitions_do_not_fit_together():
    other = Part(FittedGroups((Family("value", "age", (1,), columns=("age",)),)), Stages((), ("age=1",)))
    pooled = Part(groups((2,), ("f",)), Plus(0, [0, 0]))
    with pytest.raises(ValueError, match="other definitions"):
        SegmentedCalibrator(table(), pooled, [other] * 5)
    with pytest.raises(ValueError, match="4 calibrators for 5 segments"):
        SegmentedCalibrator(table(), pooled, [pooled] * 4)
    text = Part(groups(("2",), ("f",)), Plus(0, [0, 0]))
    with pytest.raises(ValueError, match="different types"):
        SegmentedCalibrator(table(), pooled, [text] * 5)

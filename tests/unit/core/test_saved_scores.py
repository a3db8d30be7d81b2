"""Which scores a model's folder is of: written, read, and forged."""

import copy
import json

import pytest

from mcspark.core.saved import digest, of_several, saved_model
from mcspark.core.saved_scores import SavedScores

FOUND = SavedScores({"a": "1" * 64, "b/`": "2" * 64})


def test_round_trip():
    plain = json.loads(json.dumps(FOUND.to_dict("1.0")))
    assert of_several(plain)
    assert SavedScores.from_dict(plain) == FOUND
    assert list(SavedScores.from_dict(plain).digests) == ["a", "b/`"]


def test_round_trip_of_classes():
    found = SavedScores(FOUND.digests, {"cat": "b/`", "7": "a"}, projected=True)
    assert SavedScores.from_dict(json.loads(json.dumps(found.to_dict("1.0")))) == found


def test_programs_for_one_score_say_what_it_is():
    with pytest.raises(ValueError, match=r"of several scores.*scores/0000"):
        saved_model(FOUND.to_dict("1.0"))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"scores": []}, "names no score"),
        ({"scores": {"a": "x"}}, "names no score"),
        ({"scores": [{"score": "a", "sha256": "x"}, {"score": "A", "sha256": "y"}]}, "a score twice"),
        ({"scores": [{"score": "a"}]}, "exactly the keys"),
        ({"scores": [{"score": 1, "sha256": "x"}]}, "no text"),
        ({"scores": [{"score": "", "sha256": "x"}]}, "no text"),
        ({"scores": [["score", "sha256"]]}, "exactly the keys"),
        ({"schema_version": 2}, "schema version is 2"),
        ({"schema_version": True}, "schema version is True"),
        ({"more": 1}, "not of several"),
        ({"classes": {"scores": {"x": "a", "y": "b/`"}}}, "exactly the keys scores and projected"),
        ({"classes": {"scores": {"x": "a", "y": "b/`"}, "projected": 1}}, "not as they are written"),
        ({"classes": {"scores": {"x": "a"}, "projected": True}}, "not those of its scores"),
        ({"classes": {"scores": {"x": "a", "y": "a"}, "projected": True}}, "not those of its scores"),
        ({"classes": {"scores": {"x": "a", "y": 1}, "projected": True}}, "not those of its scores"),
    ],
)
def test_forged_files_are_refused(change, match):
    plain = {**copy.deepcopy(FOUND.to_dict("1.0")), **change}
    with pytest.raises(ValueError, match=match):
        SavedScores.from_dict({**plain, "sha256": digest(plain)})


@pytest.mark.parametrize("plain", [None, [], "x", {}, {"scores": 1}, {**FOUND.to_dict("1"), "mcspark": "2"}])
def test_anything_else_is_a_value_error(plain):
    with pytest.raises(ValueError, match=r"."):
        SavedScores.from_dict(plain)

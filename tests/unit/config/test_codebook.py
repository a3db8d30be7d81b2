"""Titles and labels of columns: in the configuration, in a codebook of one's own, in the one that ships."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from mcspark.config import Groups
from mcspark.config.codebook import SHIPPED, read_codebook
from mcspark.config.yaml_text import parse_yaml


def groups(text):
    return Groups.model_validate(parse_yaml(text))


def test_codes_in_yaml_need_no_quotes():
    found = groups("columns: [{column: RAC1P, title: Race, labels: {1: White, 02: Black, b: Blue}}]")
    assert found.columns[0].labels == {"1": "White", "02": "Black", "b": "Blue"}
    assert Groups.model_validate({"columns": [{"column": "a", "labels": {1: "x"}}]}).columns[0].labels == {
        "1": "x"
    }


def test_the_codebook_that_ships_says_what_the_columns_of_the_survey_are():
    found = groups(
        "{codebook: acs, columns: [{column: RAC1P, labels: {1: White}}, "
        "{column: OCCP, divide_by: 100}, {column: OCCP2}]}"
    )
    race, work, other = map(found.words_of, found.columns)
    assert (race.title, race.labels["1"], race.labels["6"]) == ("Race", "White", "Asian alone")
    assert (work.title, work.labels["47"], work.labels["0"]) == (
        "Occupation",
        "Sales (4700s)",
        "Management (0000s)",
    )
    assert (other.title, other.labels) == (None, None)
    for name in SHIPPED:
        for column, entry in read_codebook(name).items():
            words = list((entry.labels or {}).values())
            assert len(set(words)) == len(words), column


def test_a_codebook_of_ones_own_is_a_file(tmp_path):
    place = tmp_path / "codes.yaml"
    place.write_text("job: {title: Work, labels: {a: Baker}}\n")
    found = groups(f"{{codebook: {place}, columns: [{{column: job, title: Craft}}]}}")
    assert found.words_of(found.columns[0]).title == "Craft"
    assert found.words_of(found.columns[0]).labels == {"a": "Baker"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read"),
        ("[1]", "is no codebook"),
        ("job: {labels: {a: 3}}", r"is no codebook: job.labels.a"),
        ("job: {label: {a: b}}", "job.label: Extra"),
        ("job: {title: ''}", "1 to 200 printable"),
        ('job: {title: "a\\nb"}', "1 to 200 printable"),
        ("a: !!python/object:os.system x", "is no codebook"),
        ("\xff", "is no codebook"),
    ],
)
def test_what_is_no_codebook_is_refused_by_its_key(tmp_path, text, words):
    place = tmp_path / "codes.yaml"
    if text is not None:
        place.write_text(text, encoding="latin-1")
    with pytest.raises(ValidationError, match=words) as error:
        groups(f"codebook: {place}")
    assert error.value.errors()[0]["loc"] == ("codebook",)

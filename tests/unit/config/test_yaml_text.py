"""YAML as people and fuzzers write it: a value without surprises, or one sentence."""

import json
import time

import pytest

from mcspark.config.yaml_text import parse_yaml


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('!!int ""', "beside !!int is none"),
        ('a: !!int "x"', "beside !!int is none.*line 1, column 4"),
        ("!!int [1]", "beside !!int is none"),
        ('!!float "1_0"', "beside !!float is none"),
        ("!!bool maybe", "beside !!bool is none"),
        ("!!null x", "beside !!null is none"),
        ('!!timestamp "abc"', "could not determine a constructor for the tag .*:timestamp.*line 1"),
        ("!!timestamp 2026-01-01", "could not determine a constructor for the tag .*:timestamp.*line 1"),
        ("!!binary a", "could not determine a constructor for the tag .*:binary.*line 1"),
        ("!!set {a}", "could not determine a constructor for the tag .*:set.*line 1"),
        ("!!omap [a: 1]", "could not determine a constructor for the tag .*:omap.*line 1"),
        (
            "!!python/object:os.system x",
            "could not determine a constructor for the tag .*:python/object:os.system.*line 1",
        ),
        ("!secret x", "could not determine a constructor for the tag .!secret"),
        (r'"\ud800"', r"U\+D800, which no text has"),
        (r'{"\udfff": 1}', r"U\+DFFF, which no text has"),
        ("a\ud800b", r"U\+D800, which no text has"),
        (r'"a\0b"', r"U\+0000, which no text has"),
        ("a\0b", r"U\+0000, which no text has"),
        ("{a: 1, b: {c: 1, c: 2}}", "'c' stands twice"),
        ('{"a": 1, a: 2}', "'a' stands twice"),
        ("[" * 3000, "nested more than 50 deep"),
        ("{a: " * 51 + "1" + "}" * 51, "nested more than 50 deep"),
        ("a: &a [*a]", "nested more than 50 deep"),
        ("9" * 5000, "number too long"),
        ("{<<: 1}", "expected a mapping"),
    ],
)
def test_what_is_no_plain_value_is_refused_in_one_sentence(text, words):
    with pytest.raises(ValueError, match=words) as caught:
        parse_yaml(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("!!str 01", "01"),
        ("!!int 5", 5),
        ("!!float 1e-3", 1e-3),
        ("!!null", None),
        ("!!map {a: 1}", {"a": 1}),
    ],
)
def test_tags_of_plain_values_are_understood(text, value):
    assert parse_yaml(text) == value


@pytest.mark.parametrize("aliases", [9, 100_000])
def test_merges_of_merges_are_refused_or_read_quickly(aliases):
    keys = ", ".join(f"k{i}: 1" for i in range(300))
    lines = [f"a0: &a0 {{{keys}}}"]
    lines += [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}" for i in range(1, 9)]
    lines.append(f"b: {{<<: [{', '.join(['*a8'] * aliases)}]}}")
    start = time.process_time()
    try:
        assert len(parse_yaml("\n".join(lines))["b"]) == 300
    except ValueError as error:
        assert "merges more than 100 others" in str(error)
    assert time.process_time() - start < 30


def test_json_as_any_writer_of_it_escapes_it():
    plain = {"bell 🔔": "é 🔔", "n": [1, None, True]}
    assert parse_yaml(json.dumps(plain)) == plain
    assert parse_yaml(json.dumps(plain, ensure_ascii=False)) == plain

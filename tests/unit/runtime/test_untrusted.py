import pytest

from mcspark.runtime.files.untrusted import read_json


def test_json_is_read():
    assert read_json('{"a": [1, -2.5e3, null, "NaN"]}') == {"a": [1, -2500.0, None, "NaN"]}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 400 + ".0"])
def test_numbers_that_are_not_finite_are_refused(number):
    with pytest.raises(ValueError, match="no finite number"):
        read_json(f'{{"a": [{number}]}}')


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"a":' * 100_000, "'a'", "9" * 5000])
def test_nothing_but_value_error_is_raised(text):
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


def test_half_a_character_is_refused_and_a_pair_is_read():
    assert read_json('"\\ud83d\\ude42 \\\\ud800"') == "\U0001f642 \\ud800"
    for text in ('"\\ud83d"', '["a", {"\\uDE42": 1}]', '"\ud800"'):
        with pytest.raises(ValueError, match=r"is half a character"):
            read_json(text)

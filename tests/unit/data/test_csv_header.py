"""The first bytes of a CSV: names of the columns, or one sentence about what the file is."""

from __future__ import annotations

import gzip

import pytest

from mcspark.config.csv_text import CsvText
from mcspark.data.formats.csv_header import header_of
from mcspark.data.formats.names import difference, twins
from mcspark.errors import ContractError


@pytest.mark.parametrize(
    ("head", "options", "names"),
    [
        (b"a,b\n1,2\n", {}, ["a", "b"]),
        ("\ufeffé,b\r\n".encode(), {}, ["é", "b"]),
        (b'"a\nx","b,"""\n', {}, ["a\nx", 'b,"']),
        (b"\n\na\tb", {"delimiter": "\t"}, ["a", "b"]),
        (b",a,\n", {}, ["_c0", "a", "_c2"]),
        ("é;b\n".encode("cp1252"), {"delimiter": ";", "encoding": "windows-1252"}, ["é", "b"]),
        ("é,b\n".encode("utf-16"), {"encoding": "utf-16"}, ["é", "b"]),
        (rb'"a\"b",c', {"escape": "\\"}, ['a"b', "c"]),
        (b"", {}, []),
    ],
)
def test_names(head, options, names):
    assert header_of(head, CsvText(**options), "f.csv") == names


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"id;score;label\n", r'seems to be \';\'.*set csv: \{delimiter: ";"\}'),
        (b"id\tscore\n", r'delimiter: "\\t"'),
        (b"PAR1xxxx", "is a Parquet file; write format: parquet"),
        (b"PK\x03\x04xx", "spreadsheet"),
        (gzip.compress(b"a,b\n", mtime=0), r"let its name end in \.csv\.gz"),
        ("é,b".encode("cp1252"), r"is not utf-8; set csv: \{encoding"),
        ("a,b".encode("utf-16"), "encoding: utf-16"),
        (b"a,b,a\n", r"named more than once: \['a'\]"),
        (b"a,b,A\n", r"differ only in case: \['A', 'a'\]"),
        (b'"a,b\n1,2\n', "its header cannot be read"),
    ],
)
def test_what_is_no_header_is_told_in_a_sentence(head, words):
    with pytest.raises(ContractError, match=words):
        header_of(head, CsvText(), "f.csv")


def test_what_sets_two_names_apart():
    assert "Unicode" in difference("région", "re\u0301gion")
    assert difference("age", " age") == "other blanks"
    assert difference("age", "\u200bage") == "characters that cannot be seen"
    assert difference("age", "rage") is None
    assert twins(["a", "b"]) is None


def test_utf_16_without_its_mark_is_said():
    """Python tells no place of it, unlike of other wrong bytes."""
    with pytest.raises(ContractError, match="it is not utf-16; set csv"):
        header_of("é,b\n".encode("utf-16-le"), CsvText(encoding="utf-16"), "f.csv")

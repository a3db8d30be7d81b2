import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcspark.identifiers import (
    check_identifier,
    check_partition_value,
    check_path,
    check_run_id,
    check_written,
    quote_identifier,
    quote_table,
)


@pytest.mark.parametrize(
    ("name", "quoted"),
    [("a", "`a`"), ("a.b", "`a.b`"), ("a b", "`a b`"), ("`", "````"), ("größe`", "`größe```"), ('"', '`"`')],
)
def test_quote_identifier(name, quoted):
    assert quote_identifier(name) == quoted


@given(st.text(min_size=1))
def test_quoting_can_be_undone(name):
    quoted = quote_identifier(name)
    assert quoted[0] == quoted[-1] == "`"
    inner = quoted[1:-1]
    assert inner.replace("``", "`") == name
    assert inner.replace("``", "").count("`") == 0


def test_quote_table():
    assert quote_table("lake.my-db.scores") == "`lake`.`my-db`.`scores`"


@pytest.mark.parametrize("name", ["", "1a", "a b", "a-b", "a.b", "é", "a/b", "a\n", "a" * 256])
def test_no_identifier(name):
    with pytest.raises(ValueError, match="is no identifier; use ASCII letters"):
        check_identifier(name)


@pytest.mark.parametrize("text", ["a", "2026-11-26_1", "0", "a" * 128])
def test_run_ids(text):
    assert check_run_id(text) == text


@pytest.mark.parametrize("text", ["", "..", "a/b", "-a", "_a", "a.b", "a b", "a\n", "é", "a" * 129])
def test_refused_run_ids(text):
    with pytest.raises(ValueError, match="is not safe as a file name"):
        check_run_id(text)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("st", "01"), ("ds", "2026-11-26"), ("ds", "20240229"), ("date", "2024-02-29"), ("DS", "2026-01-01"),
        ("region", "Île de France"), ("v", "1.5-rc_1"), ("hour", "2026-13-01"), ("x", "none"),
    ],
)  # fmt: skip
def test_partition_values(key, value):
    assert check_partition_value(key, value) == value


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("st", "", "is empty; give a value, or leave the partition out"),
        ("st", "None", "is what a scheduler writes for a missing value"),
        ("ds", "None", "is what a scheduler writes for a missing value"),
        ("st", "null", "is what a scheduler writes for a missing value"),
        ("st", "__HIVE_DEFAULT_PARTITION__", "is what a scheduler writes for a missing value"),
        ("ds", "{{ ds }}", "holds '{{', a template left unrendered; render it before the job"),
        ("st", "..", "would leave the folder of the table; remove the dots"),
        ("st", "a..b", "would leave the folder of the table"),
        ("st", "../x", "would leave the folder of the table"),
        ("st", ".", "would leave the folder of the table"),
        ("st", "a/b", "holds '/', which a folder name cannot"),
        ("st", "a\\b", "which a folder name cannot"),
        ("st", "a=b", "holds '=', which a folder name cannot"),
        ("st", "a:b", "holds ':', which a folder name cannot"),
        ("st", "a%2Fb", "holds '%', which a folder name cannot"),
        ("st", " a", "is padded"),
        ("st", "a\x00", "holds a control character"),
        ("st", "a" * 256, "longer than 255 characters"),
        ("ds", "2026-13-01", "is a date that does not exist; write a real one as YYYY-MM-DD"),
        ("ds", "2025-02-29", "is a date that does not exist"),
        ("DATE", "20260231", "is a date that does not exist"),
        ("ds", "0000-01-01", "is a date that does not exist"),
        ("ds", "26-11-2026", "is no date; write it as YYYY-MM-DD"),
        ("ds", "2026-1-1", "is no date"),
        ("ds", "2026-11-26\n", "is padded"),
        ("ds", "٢٠٢٦-11-26", "is no date"),
    ],
)
def test_refused_partition_values(key, value, words):
    with pytest.raises(ValueError) as caught:
        check_partition_value(key, value)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"partition {key}=")


@pytest.mark.parametrize(
    "path", [".", "./", "..", "a/.", "a/..", "/", "//", "file:/", "file:///", "s3a://bucket", "s3a://bucket/"]
)
def test_what_is_written_has_a_name_of_its_own(path):
    """Its companions are named after it: ``._rejected`` is hidden, ``bucket_rejected`` another bucket."""
    with pytest.raises(ValueError, match="has no name of its own at the end"):
        check_written(path)


@pytest.mark.parametrize(
    "path", ["a", "./a", "/a//", "../a", "file:/a", "file:///a", "s3a://bucket/a", "hdfs:///a"]
)
def test_a_path_with_a_name_may_be_written(path):
    assert check_written(path) == path


def test_paths_that_mean_something_else_than_they_seem():
    with pytest.raises(ValueError, match="'~' is not replaced by the home folder"):
        check_path("~/scored")
    with pytest.raises(
        ValueError, match="file://data names a host; write a file of this machine as file:///"
    ):
        check_path("file://data/scored")

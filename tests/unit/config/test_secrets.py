import pytest

from mcspark.config import redact, redact_uri


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("s3a://id:secret@b/x?password=x&year=2024", "s3a://***@b/x?password=***&year=2024"),
        ("s3a://AK:se/c/ret@b/p", "s3a://***@b/p"),
        ("s3a://token@b/x", "s3a://***@b/x"),
        ("https://h/p?sv=1&sig=abc%3D&se=2", "https://h/p?sv=1&sig=***&se=2"),
        ("https://h/p?AccessKeyId=A&X-Amz-Signature=b", "https://h/p?AccessKeyId=***&X-Amz-Signature=***"),
        ("jdbc:postgresql://h/db?user=u&password=p;x=1", "jdbc:postgresql://h/db?user=u&password=***;x=1"),
        ("s3a://u:p@b?fs.s3a.secret.key=k#f", "s3a://***@b?fs.s3a.secret.key=***#f"),
        ("read s3a://u:p@b/x, wrote s3a://q:z@c/y", "read s3a://***@b/x, wrote s3a://***@c/y"),
        ("abfss://box:pw@account/p", "abfss://***@account/p"),
    ],
)
def test_hidden(text, safe):
    assert redact_uri(text) == safe


@pytest.mark.parametrize(
    "text",
    [
        "data/scored", "hdfs://nn:8020/a@b", "s3a://b/a@b/c", "abfss://box@account.dfs.core.windows.net/p",
        "/a?year=2024", "someone@example.org",
    ],
)  # fmt: skip
def test_left_alone(text):
    assert redact_uri(text) == text


def test_whole_values():
    plain = {
        "paths": ("s3a://u:p@b",),
        "key": ["id"],
        "n": 1,
        "fs.s3a.access.key": "AK",
        "none": None,
    }
    assert redact(plain) == {
        "paths": ["s3a://***@b"], "key": ["id"], "n": 1, "fs.s3a.access.key": "***", "none": None,
    }  # fmt: skip


def test_paths_that_are_keys_and_the_counts_below_them():
    plain = {"unmatched": {"/data;token=abc/t": 3}, "password": "abc", "tokens": 3}
    assert redact(plain) == {"unmatched": {"/data;token=***": 3}, "password": "***", "tokens": 3}

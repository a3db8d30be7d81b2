"""There is one way to a table: a path is taken as it is written, never as a pattern."""

from __future__ import annotations

import re
from pathlib import Path

import mcspark

SOURCES = Path(mcspark.__file__).parent


RAW = (
    r"spark\.read\b(?!\.format\(table_format|\.option\(option)",  # versioned tables take no patterns
    r"\.readStream\b", r"globStatus", r"wholeTextFiles", r"binaryFiles", r"\.textFile\(",
)  # fmt: skip


def test_nothing_but_the_literal_reader_opens_a_path():
    raw = re.compile("|".join(RAW))
    found = {
        str(path.relative_to(SOURCES)): lines
        for path in SOURCES.rglob("*.py")
        if (lines := raw.findall(path.read_text(encoding="utf-8")))
    }
    # The reader itself, and the one search by a pattern, whose folder is escaped.
    assert found == {"engine/literal.py": ["spark.read"], "engine/classic/store.py": ["globStatus"]}

"""Names a user gives: columns, tables, partitions and runs; what is refused, and their form in Spark."""

from __future__ import annotations

import re
from datetime import date

MAX_NAME = 255
MAX_SEGMENT_COLUMNS = 6
"""Most columns of a segment: the places of its values in all of them are one number of 62 bits."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z")
_TABLE_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*\Z")
_ROOT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?(//[^/]*)?/*")
_FILE_HOST = re.compile(r"file://[^/]+", re.IGNORECASE)
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})\Z|(\d{4})(\d{2})(\d{2})\Z", re.ASCII)
_DATE_KEYS = ("ds", "date")
# What Hive-style folder names write as %XX: two writers could name one partition differently.
_ESCAPED_IN_FOLDERS = "\"#%'*/:=?\\{}[]^"
_FOR_NOTHING = ("None", "null", "NULL", "__HIVE_DEFAULT_PARTITION__")


def folded(name: str) -> str:
    """What two column names have in common that Spark takes for one: it compares letter by letter.

    Examples
    --------
    >>> folded("Weight") == folded("WEIGHT")
    True
    >>> folded("straße") == folded("STRASSE")
    False
    """
    # As Java's equalsIgnoreCase: the capital of each letter, then the small letter of that.
    capitals = (c.upper() if len(c.upper()) == 1 else c for c in name)
    return "".join(c.lower()[0] for c in capitals)


def quote_identifier(name: str) -> str:
    """Spark SQL for exactly the column called ``name``, whatever characters the name holds.

    Examples
    --------
    >>> quote_identifier("income.2018")
    '`income.2018`'
    >>> quote_identifier("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def quote_table(name: str) -> str:
    """Spark SQL for a table name of one or more parts parted by dots: ``lake.db.name``."""
    return ".".join(quote_identifier(part) for part in name.split("."))


def unrendered(text: str) -> str | None:
    """The first mark of a template (Jinja) or variable (shell, Spark) in ``text``; ``None`` without one."""
    return next((mark for mark in ("{{", "{%", "${") if mark in text), None)


def check_column(name: str) -> str:
    """A column name as it is; ``ValueError`` if no table can hold it or Spark would rewrite it."""
    if not name.strip():
        raise ValueError("a column name is empty; name a column")
    if len(name) > MAX_NAME:
        raise ValueError(f"a column name is longer than {MAX_NAME} characters; shorten it")
    if _CONTROL.search(name):
        raise ValueError("a column name holds a control character; rename the column")
    if "${" in name:
        raise ValueError("'${' in a column name would be substituted by Spark; rename the column")
    return name


def check_identifier(name: str) -> str:
    """A plain identifier (letters, digits, underscore), such as a partition key; else ``ValueError``."""
    if not _IDENTIFIER.match(name) or len(name) > MAX_NAME:
        raise ValueError(
            f"{name!r} is no identifier; use ASCII letters, digits and underscores, not starting with a digit"
        )
    return name


def check_run_id(text: str) -> str:
    """A run id that is safe as a file name: 1 to 128 letters, digits, ``_``, ``-``; else ``ValueError``."""
    if not _RUN_ID.match(text):
        raise ValueError(
            f"run id {text!r} is not safe as a file name; use 1 to 128 ASCII letters, digits, '_' and '-', "
            "starting with a letter or digit"
        )
    return text


def check_table(name: str) -> str:
    """A catalog table name, ``name`` up to ``catalog.schema.schema.name``; else ``ValueError``."""
    parts = name.split(".")
    if len(parts) > 4 or not all(_TABLE_PART.match(part) for part in parts):
        raise ValueError(
            f"{name!r} is no table name; write catalog.schema.name with letters, digits, '_' and '-'"
        )
    return name


def check_path(path: str) -> str:
    """A path or URI as it is; ``ValueError`` if it is blank, padded, or has control characters."""
    if not path.strip():
        raise ValueError("a path is empty; name a folder or file")
    if path != path.strip() or _CONTROL.search(path):
        raise ValueError("a path begins or ends with a space or holds a control character; remove it")
    if mark := unrendered(path):
        raise ValueError(f"{mark!r} in a path is a template left unrendered; render it before the job")
    if path.partition("/")[0] == "~":
        raise ValueError("'~' is not replaced by the home folder here; write its name in full")
    if host := _FILE_HOST.match(path):
        raise ValueError(f"{host[0]} names a host; write a file of this machine as file:///folder")
    return path


def check_written(path: str) -> str:
    """A path of what a job writes: also ``ValueError`` without a name of its own at the end.

    Other tables lie beside it, under names made from its own.
    """
    checked = check_path(path)
    if _ROOT.fullmatch(path) or path.rstrip("/").rpartition("/")[2] in ("", ".", ".."):
        raise ValueError("has no name of its own at the end; name a folder or file, such as …/calibrated")
    return checked


def check_partition_value(key: str, value: str) -> str:
    """A partition value that is safe as the end of a folder name ``key=value``; else ``ValueError``.

    Parameters
    ----------
    key : str
        Partition column; the values of ``ds`` and ``date`` must be dates that exist.
    value : str
        Text, kept as written: ``01`` stays ``01``.
    """
    wrong = _wrong_with_value(value)
    if wrong is None and key.lower() in _DATE_KEYS:
        wrong = _wrong_with_date(value)
    if wrong is not None:
        raise ValueError(f"partition {key}={value!r} {wrong}")
    return value


def _wrong_with_value(value: str) -> str | None:
    template = unrendered(value)
    bad = next((c for c in value if c in _ESCAPED_IN_FOLDERS), None)
    wrong = None
    if not value:
        wrong = "is empty; give a value, or leave the partition out"
    elif value in _FOR_NOTHING:
        wrong = "is what a scheduler writes for a missing value; check the template that fills it in"
    elif template is not None:
        wrong = f"holds {template!r}, a template left unrendered; render it before the job"
    elif ".." in value or value == ".":
        wrong = "would leave the folder of the table; remove the dots"
    elif value != value.strip() or _CONTROL.search(value) or len(value) > MAX_NAME:
        wrong = f"is padded, longer than {MAX_NAME} characters, or holds a control character; clean it"
    elif bad is not None:
        wrong = f"holds {bad!r}, which a folder name cannot; use letters, digits, '-', '_' and '.'"
    return wrong


def _wrong_with_date(value: str) -> str | None:
    try:
        day_of(value)
    except ValueError as error:
        return str(error)
    return None


def day_of(text: str) -> date:
    """The day that is written as YYYY-MM-DD or YYYYMMDD; else ``ValueError``."""
    match = _DATE.match(text)
    if match is None:
        raise ValueError("is no date; write it as YYYY-MM-DD")
    try:
        return date(*(int(part) for part in match.groups() if part is not None))
    except ValueError:
        raise ValueError("is a date that does not exist; write a real one as YYYY-MM-DD") from None


def day_like(day: date, text: str) -> str:
    """A day written like the one in ``text``: with dashes or without."""
    return day.strftime("%Y-%m-%d" if "-" in text else "%Y%m%d")

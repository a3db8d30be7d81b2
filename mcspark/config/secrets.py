"""Keep secrets out of whatever leaves the process as text: summaries, manifests, reports, messages, logs.

A path may carry a secret: user information, a query with a token or signature, a parameter behind ``;``. Such
a path opens a table, and is written nowhere; what is written is :func:`redact` of it.
"""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "***"
# A password may hold slashes; a port is none. What stands before the last @ is hidden.
_USERINFO = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)"
    r"(?P<user>[^/?#\s:@]*:(?!\d+/)[^\s'\"?#]*|[^/?#\s]*)@"
)
_SECRET_NAME = re.compile(
    r"password|passwd|secret|token|credential|(access|account|private|api)[._-]?key", re.IGNORECASE
)
# abfss://container@account…: what stands before @ is no secret, and is needed to read the log.
_CONTAINER_SCHEMES = ("abfs://", "abfss://", "wasb://", "wasbs://")
_SECRET_PART = re.compile(
    r"(?P<name>(?<=[?&;])[^?&;=#\s]*"
    r"(?:password|passwd|pwd|secret|token|key|credential|signature|(?<=[?&;])sig)[^?&;=#\s]*=)[^&;#\s]*",
    re.IGNORECASE,
)

JAVA_PATTERN = (
    r"(?i)(?<=[?&;])[^?&;=#\s]{0,99}(?:password|passwd|pwd|secret|token|key|credential|signature|"
    r"(?<=[?&;])sig)[^?&;=#\s]*=[^&;#\s]*|(?<=://)(?!\w+@\w+\.(?:dfs|blob)\.)[^/?#\s@]{1,999}@"
)
"""The same for Spark, which hides what matches wherever it shows a plan."""


def redact_uri(text: str) -> str:
    """``text`` with the user part and the secret-like query parts of every URI in it replaced by ``***``.

    Examples
    --------
    >>> redact_uri("s3a://id:secret@bucket/scored?password=x&year=2024")
    's3a://***@bucket/scored?password=***&year=2024'
    """
    return _SECRET_PART.sub(rf"\g<name>{HIDDEN}", _USERINFO.sub(_hide_user, text))


def redact(plain: Any) -> Any:
    """The same value without secrets, at any depth.

    Every text goes through :func:`redact_uri`, keys too; the text under a key that speaks of a password,
    secret, token, credential or access key, as in Spark's own settings, becomes ``***``.
    """
    if isinstance(plain, str):
        return redact_uri(plain)
    if isinstance(plain, dict):
        return {
            redact(key): HIDDEN if isinstance(value, str) and _names_a_secret(key) else redact(value)
            for key, value in plain.items()
        }
    if isinstance(plain, (list, tuple)):
        return [redact(value) for value in plain]
    return plain


def _names_a_secret(key: Any) -> bool:
    # A path may be a key, as in counts by table; what is secret in it is hidden as in every text.
    return "/" not in str(key) and _SECRET_NAME.search(str(key)) is not None


def _hide_user(match: re.Match[str]) -> str:
    scheme, user = match["scheme"], match["user"]
    if scheme.lower() in _CONTAINER_SCHEMES and ":" not in user and "@" not in user:
        return match[0]
    return f"{scheme}{HIDDEN}@"

"""What a Java exception says in the end: its message, the deepest cause below it, and how to mend that."""

from __future__ import annotations

import re

from mcspark.engine.errors import SPARK_ERRORS, chain

_LONGEST = 300

_MENDS = tuple(
    (re.compile(pattern, re.IGNORECASE), mend)
    for pattern, mend in (
        (
            r"PKIX|SSLHandshake|CertificateException|valid certification path|certificate_unknown",
            "the certificate there is not trusted: give Java its authority's certificate, by "
            "-Djavax.net.ssl.trustStore=… in spark.driver.extraJavaOptions and those of the executors",
        ),
        (
            r"UnknownHost|Host \S+ not found|Name or service not known|nodename nor servname",
            "the host name is not resolved: check its spelling, the name server and the proxy",
        ),
        (
            r"\b40[13]\b|Forbidden|Unauthorized|AccessDenied|AccessControlException|Permission denied",
            "access is refused: check the credentials and what they may do",
        ),
        (r"timed? ?out|no answer in", "no answer in time: check the network and the proxy, and try again"),
        (
            r"Connection refused|NoRouteToHost|Network is unreachable|Connection reset|ConnectException",
            "nothing answers there: check address, port and proxy, and whether this machine is offline",
        ),
        (r"No space left|Disk quota exceeded|Not enough space", "the disk is full: free some space there"),
        (r"SERVER ERROR|\b50[0-9]\b", "the server has failed: try again later"),
    )
)

_TOLD_BY_IVY = re.compile(
    r"(?:SERVER ERROR|Server access error|Host \S+ not found|Your proxy requires|[\w.]+Exception: )[^\n]*",
    re.IGNORECASE,
)


def advice(text: str) -> str | None:
    """How to mend what the text speaks of; None where it speaks of nothing known."""
    return next((mend for pattern, mend in _MENDS if pattern.search(text)), None)


def java_reason(error: BaseException) -> str:
    """The message of an error of Spark's in one line: with its class, its deepest cause, and the mend.

    Such as ``SSLException: cannot connect, caused by ValidatorException: …; the certificate there …``.
    """
    (kind, message), *causes = chain(error)
    first = f"{kind}: {_line(message)}"
    deepest = next((cause for cause in reversed(causes) if cause[1]), None)
    if deepest is not None and _line(deepest[1]) not in first:
        first = f"{first}, caused by {deepest[0]}: {_line(deepest[1])}"
    mend = advice(first)
    return f"{first}; {mend}" if mend else first


def _line(text: object) -> str:
    lines = str(text or "").strip().splitlines()
    return lines[0].strip()[:_LONGEST] if lines else "no message"


def telling(text: str) -> list[str]:
    """Lines of Ivy's that name a cause, each once; in the order of the mends, those without one last."""
    lines = dict.fromkeys(found.group().strip()[:_LONGEST] for found in _TOLD_BY_IVY.finditer(text))
    return sorted(lines, key=_rank)


def _rank(line: str) -> int:
    return next((i for i, (pattern, _) in enumerate(_MENDS) if pattern.search(line)), len(_MENDS))


def unresolved(error: Exception, reported: list[str]) -> str:
    """Why jars could not be resolved, in one line with the mend."""
    said = java_reason(error) if isinstance(error, SPARK_ERRORS) else str(error)
    if not reported:
        return said
    mend = advice(reported[0])
    return f"{said} ({reported[0]})" + (f"; {mend}" if mend and mend not in said else "")

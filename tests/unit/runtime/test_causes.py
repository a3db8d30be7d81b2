"""Messages name the cause that an exception of Java's carries at the bottom, and how to mend it."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

from mcspark.runtime.process.causes import advice, java_reason, telling, unresolved


class Thrown:
    """An exception of Java's, as py4j hands it over."""

    _target_id, _gateway_client = "o1", None

    def __init__(self, kind: str, message: str | None, cause: Thrown | None = None) -> None:
        self.kind, self.message, self.cause = kind, message, cause

    def getClass(self) -> Thrown:
        return self

    def getSimpleName(self) -> str:
        return self.kind

    def getMessage(self) -> str | None:
        return self.message

    def getCause(self) -> Thrown | None:
        return self.cause


def raised(*chain: tuple[str, str | None]) -> Py4JJavaError:
    """The outermost of these exceptions, each caused by the next."""
    thrown: Thrown | None = None
    for kind, message in reversed(chain):
        thrown = Thrown(kind, message, thrown)
    error = Py4JJavaError.__new__(Py4JJavaError)
    error.java_exception = thrown
    return error


@pytest.mark.parametrize(
    ("chain", "said", "mend"),
    [
        ([("SSLException", "no"), ("ValidatorException", "PKIX path failed")], "PKIX", "not trusted"),
        ([("IOException", "x"), ("UnknownHostException", "nowhere")], "nowhere", "not resolved"),
        ([("S3Exception", "Status Code: 403; Forbidden")], "403", "credentials"),
        ([("IOException", "x"), ("SocketTimeoutException", "timed out")], "timed out", "no answer in time"),
        ([("IOException", "x"), ("ConnectException", "Connection refused")], "refused", "offline"),
        ([("SparkException", "x"), ("IOException", "No space left")], "No space", "disk is full"),
    ],
)  # fmt: skip
def test_the_deepest_cause_and_its_mend(chain: list[tuple[str, str]], said: str, mend: str) -> None:
    reason = java_reason(raised(*chain))
    assert reason.startswith(f"{chain[0][0]}: {chain[0][1]}")
    assert said in reason
    assert mend in reason
    assert "\n" not in reason


def test_causes_without_a_message_and_causes_that_repeat_it_say_nothing_more() -> None:
    assert java_reason(raised(("IOException", "a disk"), ("Error", None))) == "IOException: a disk"
    assert java_reason(raised(("IOException", "x: a disk"), ("Error", "a disk"))) == "IOException: x: a disk"


def test_exceptions_that_pyspark_has_translated() -> None:
    assert java_reason(AnalysisException("[A_B] it is so.\nmore")) == "AnalysisException: [A_B] it is so."


IVY = """\
:::: WARNINGS
    module not found: com.x#y_2.12;1.0
    Host nowhere.invalid not found. url=http://nowhere.invalid/y.pom
:::: ERRORS
    Server access error at url https://r/y.pom (javax.net.ssl.SSLHandshakeException: PKIX failed)
    Server access error at url https://r/y.pom (javax.net.ssl.SSLHandshakeException: PKIX failed)
"""


def test_what_ivy_prints_tells_why_a_module_is_not_found() -> None:
    told = telling(IVY)
    assert [line.partition(" ")[0] for line in told] == [
        "Server",
        "Host",
    ]  # the second repository is often unknown
    said = unresolved(raised(("RuntimeException", "[unresolved dependency: y: not found]")), told)
    assert said.startswith("RuntimeException: [unresolved dependency: y: not found] (Server access error")
    assert "certificate there is not trusted" in said
    assert telling("module not found: com.x#y") == []


def test_nothing_is_advised_where_nothing_is_known() -> None:
    assert advice("a table of 40312 rows") is None

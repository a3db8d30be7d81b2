"""What a failure of Spark means to whoever runs the job: try again, mend the machine, or look into it."""

from __future__ import annotations

import re

from mcspark.engine.errors import SPARK_ERRORS, is_gone
from mcspark.errors import ConfigurationError, ContractError, McsparkError, TransientError

_LOST = re.compile(
    r"ExecutorLostFailure|FetchFailed|Failed to connect to|Connection refused|Connection reset|"
    r"executor .{1,100} exited|Slave lost|Worker lost|Heartbeat|TimeoutException|SocketTimeoutException|"
    r"All masters are unresponsive|stopped SparkContext|SparkContext was shut down|BarrierJobSlotsNumber|"
    r"StatusCode\.UNAVAILABLE|RETRIES_EXCEEDED|INVALID_HANDLE\.SESSION_"
)
_BARRIER = re.compile(
    r"Could not recover from a failed barrier ResultStage(?:.*finished unsuccessfully\.\n(?P<why>[^\n]*))?"
)
_FULL = re.compile(r"No space left on device|Disk quota exceeded|File too large|Not enough space")
_DENIED = re.compile(
    r"Permission denied|AccessControlException|Read-only file system|AccessDeniedException|Mkdirs failed"
)
_GONE = re.compile(r"(?:FileNotFoundException:|\[FAILED_READ_FILE\.FILE_NOT_EXIST\])[^\n]*")
_UNREAD = re.compile(
    r"(?:Encountered error while reading|Parquet column cannot be converted in|Checksum error)[^\n]*|"
    r"\S+ is not a Parquet file[^\n]*|Can not read value at [^\n]*"
)
_DAMAGED = re.compile(
    r"is not a Parquet file|cannot be converted in file|ParquetDecodingException|SchemaColumnConvert|"
    r"[Cc]hecksum|[Cc]ould not read page|[Cc]an ?not read (?:value|page)|(?i:uncompress|decompress|corrupt)|"
    r"[Mm]alformed|TProtocolException|EOFException|ZstdException"
)
_CAUSE = re.compile(r"^(?:Caused )?(?:by)?: ([^\n]+)", re.MULTILINE)
_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t][^\n]*\n|\n)*(?P<last>\S[^\n]*)")
_PEER_GONE = re.compile(
    r"[Ss]ocket|[Bb]inding port|[Cc]onnect|BrokenPipe|[Tt]imed? ?out|EOFError|MemoryError"
)
_OWN = re.compile(r"^mcspark\.errors\.(?P<kind>\w+): (?P<message>.+)$", re.MULTILINE)
_KINDS = {kind.__name__: kind for kind in (ConfigurationError, ContractError, McsparkError, TransientError)}
_NATIVE = re.compile(
    r"[^\n]*(?:UnsatisfiedLinkError|Could not initialize class com\.microsoft\.(?:ml|azure)|"
    r"This component doesn't currently support)[^\n]*"
)


_AGAIN = "try again in a new process; if it happens again look into that executor"


def explained(error: BaseException) -> McsparkError | None:
    """The error that a user can act on behind an error of Spark; None if it is none that is known.

    Lost executors, a lost driver JVM, connections that break and files that vanish while they are read are
    transient; a file that cannot be read breaks the contract; a disk that is full, or that may not be
    written, is for its owner to mend. What mcspark itself has raised in a task is that.
    """
    if is_gone(error):
        return TransientError(
            "the driver's JVM is gone, perhaps killed for its memory; try again, with more "
            "spark.driver.memory if it happens again"
        )
    if not isinstance(error, SPARK_ERRORS):
        return None
    text = str(error)
    for own in _OWN.finditer(text):
        if own["kind"] in _KINDS:
            return _KINDS[own["kind"]](own["message"].strip())
    for kind, pattern, mend in (
        (ConfigurationError, _FULL, "free some space there, or name another output"),
        (ConfigurationError, _DENIED, "give the job the right to write there, or name another place"),
        (TransientError, _BARRIER, _AGAIN),
        (TransientError, _LOST, _AGAIN),
    ):
        if found := pattern.search(text):
            said = _of_barrier(text, found) if pattern is _BARRIER else _line_around(text, found)
            if said is None:
                return None
            return kind(f"Spark failed: {said}; nothing was published; {mend}")
    return _of_reading(error, text)


def _of_reading(error: BaseException, text: str) -> McsparkError | None:
    """A file that is gone or cannot be read, though it was there and its schema was read before."""
    if found := _GONE.search(text):
        return TransientError(
            f"Spark failed: {found[0].strip()}; somebody has removed or replaced it while it was read; "
            "nothing was published; run again once nobody writes there"
        )
    if (found := _UNREAD.search(text)) is None:
        return None
    said = f"Spark failed: {found[0].strip()} ({reason_of(error)})"
    if _DAMAGED.search(said):  # the stack below has such words in the names of classes
        return ContractError(
            f"{said}; the file is damaged, or was written anew while it was read; nothing was published; "
            "write it anew, and run when nobody writes there"
        )
    return TransientError(f"{said}; nothing was published; run again, and if it happens again look at it")


def reason_of(error: BaseException) -> str:
    """One line on an error that nobody has foreseen: of one of Spark's, what caused it in the end."""
    text = str(error).strip()
    causes: list[str] = []
    if isinstance(error, SPARK_ERRORS):
        # What was raised in Python says more than the Java exception that brings the news.
        causes = [found["last"] for found in _RAISED.finditer(text)] or _CAUSE.findall(text)
    lines = [causes[-1]] if causes else text.splitlines()
    return lines[0].strip()[:500] if lines else type(error).__name__


def native_failure(error: BaseException) -> str | None:
    """Why the native library of LightGBM could not be loaded; None if that is not what failed."""
    found = _NATIVE.search(str(error)) if isinstance(error, SPARK_ERRORS) else None
    return found.group().strip() if found else None


def _of_barrier(text: str, found: re.Match[str]) -> str | None:
    """Why tasks that wait for each other have failed, if it may pass: in Python alone a peer that is gone."""
    raised = [python["last"] for python in _RAISED.finditer(text)]
    if raised and not _PEER_GONE.search(raised[-1]):
        return None
    why = raised[-1] if raised else found["why"] or "it does not say why"
    return f"one of several tasks that work together has ended: {why.strip()[:300]}"


def _line_around(text: str, found: re.Match[str]) -> str:
    start, end = text.rfind("\n", 0, found.start()) + 1, text.find("\n", found.end())
    return text[start : end if end >= 0 else None].strip()[:300]

"""Keep stdout for the job's summary line, whoever else in the process would like to print.

`spark-submit` runs the driver's Python as a child whose stdout *and* stderr both come out on its own stdout,
and Ivy prints there too. So the JVM's printing goes to its stderr, and what Python writes to stderr is handed
to the JVM's stderr. Native code is out of reach: a few lines of LightGBM's still precede the summary, which
stays the last line.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
import time
from collections.abc import Iterator
from typing import Any, TextIO

from mcspark.engine.classic import jvm
from mcspark.engine.errors import ENGINE_ERRORS

DRAIN_SECONDS = 20


def submitted() -> bool:
    """Whether `spark-submit` started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def terminal() -> TextIO | None:
    """The terminal on which this process's stderr comes out, to be written on; None where it is none.

    Under `spark-submit` that is the JVM's stderr. Where the system does not show it (other than Linux), there
    is no terminal.
    """
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return None
    if not submitted():
        return sys.stderr if sys.stderr.isatty() else None
    place = f"/proc/{os.getppid()}/fd/2"
    with contextlib.suppress(OSError):
        if not stat.S_ISCHR(os.stat(place).st_mode):  # noqa: PTH116  (a link to no path)
            return None
        descriptor = os.open(place, os.O_WRONLY | os.O_NOCTTY)
        if os.isatty(descriptor):
            return open(descriptor, "w", errors="replace")  # noqa: PTH123  (for the whole run)
        os.close(descriptor)
    return None


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Let a process that is started inside the block inherit stderr as its stdout."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


class JvmStderr(io.TextIOBase):
    """A text stream that writes whole lines to the JVM's stderr, or to `fallback` once the JVM is gone."""

    def __init__(self, stream: Any, fallback: TextIO) -> None:
        self._stream = stream
        self._fallback = fallback
        self._pending = ""

    def writable(self) -> bool:
        """Say that it is writable."""
        return True

    def write(self, text: str) -> int:
        """Keep `text` until its line is whole."""
        self._pending += text
        if "\n" in text:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Write what is pending."""
        text, self._pending = self._pending, ""
        if not text:
            return
        if self._stream is not None:
            try:
                self._stream.print(text)
                self._stream.flush()
                return
            except (*ENGINE_ERRORS, OSError):
                self._stream = None
        self._fallback.write(text)
        self._fallback.flush()


def keep_stdout_clean() -> None:
    """Send the JVM's printing and, under `spark-submit`, Python's stderr to the JVM's stderr."""
    if submitted():
        jvm.start()  # connects to the JVM that waits for this process
    jvm.print_to_stderr()
    if submitted() and not isinstance(sys.stderr, JvmStderr):
        sys.stderr = JvmStderr(jvm.stderr(), sys.stderr)


def drain() -> None:
    """Close this process's stdout and wait until `spark-submit` has passed on all that was written to it."""
    sys.stdout.flush()
    sys.stderr.flush()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    deadline = time.monotonic() + DRAIN_SECONDS
    with contextlib.suppress(*ENGINE_ERRORS, OSError):
        while time.monotonic() < deadline:
            if not jvm.passes_output_on():
                return
            time.sleep(0.05)

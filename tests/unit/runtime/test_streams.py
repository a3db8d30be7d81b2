"""Where text goes once the JVM's stderr takes it, and when the JVM has died."""

from __future__ import annotations

import io

from py4j.protocol import Py4JNetworkError

from mcspark.runtime.process.streams import JvmStderr


class FakeStream:
    """The part of a Java PrintStream that is used."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.alive = True

    def print(self, text: str) -> None:
        if not self.alive:
            raise Py4JNetworkError("gone")
        self.lines.append(text)

    def flush(self) -> None:
        """Nothing to do."""


def test_whole_lines_go_to_the_jvm_and_to_the_fallback_once_it_is_gone() -> None:
    java, fallback = FakeStream(), io.StringIO()
    stream = JvmStderr(java, fallback)
    stream.write("one ")
    assert java.lines == []
    stream.write("line\n")
    assert java.lines == ["one line\n"]
    java.alive = False
    print("second", file=stream)
    assert (java.lines, fallback.getvalue()) == (["one line\n"], "second\n")

"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

MAX_WIDTH = 60


class Target(str, Enum):
    """What a model is exported to."""

    sql = "sql"
    json = "json"
    onnx = "onnx"


class Form(str, Enum):
    """How an explanation is written."""

    text = "text"
    json = "json"
    svg = "svg"


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns set apart by two spaces; numbers to the right, words to the left, long words cut."""
    body = [[_short(text) for text in row] for row in rows]
    columns = list(zip(*([list(head), *body]), strict=True))
    right = [bool(body) and all(_is_number(text) for text in column[1:]) for column in columns]
    widths = [max(map(len, column)) for column in columns]

    def line(row: Sequence[str]) -> str:
        cells = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(row, widths, right, strict=True)
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([line(head), "  ".join("-" * width for width in widths), *map(line, body)])


def _short(text: str) -> str:
    text = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return text if len(text) <= MAX_WIDTH else text[: MAX_WIDTH - 1] + "…"


def _is_number(text: str) -> bool:
    return text == "–" or text.strip("+-−%, ")[:1].isdigit()

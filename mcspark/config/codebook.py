"""Codebooks: what the codes of columns mean, for whoever reads a report."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from mcspark.config.section import KeysAsText, Section
from mcspark.config.yaml_text import parse_yaml

SHIPPED = ("acs",)
MAX_BYTES = 4 * 1024 * 1024
MAX_WORDS, MAX_LABELS = 200, 10_000


def _check_words(words: str) -> str:
    if not words.strip() or len(words) > MAX_WORDS or not words.isprintable():
        raise ValueError(f"must be 1 to {MAX_WORDS} printable characters")
    return words


def _check_labels(labels: dict[str, str]) -> dict[str, str]:
    if len(labels) > MAX_LABELS:
        raise ValueError(f"has {len(labels)} labels; at most {MAX_LABELS} are read")
    return labels


Words = Annotated[str, AfterValidator(_check_words)]
Labels = Annotated[dict[str, Words], KeysAsText, AfterValidator(_check_labels)]


class Entry(Section):
    """What is known of one column."""

    title: Words | None = Field(None, description="What the column is.")
    labels: Labels | None = Field(None, description="What its values are.")


_BOOK = TypeAdapter(dict[str, Entry])


def check_codebook(name: str) -> str:
    """The name, if the codebook can be read; ``ValueError`` with one sentence if not."""
    read_codebook(name)
    return name


def read_codebook(name: str) -> dict[str, Entry]:
    """The entries of a codebook that ships, or of a YAML file on this machine, by column.

    A column that is divided has an entry of its own, ``OCCP/100``.

    Raises
    ------
    ValueError
        If it cannot be read, or is no mapping of columns to titles and labels.
    """
    if name in SHIPPED:
        return _shipped(name)
    try:
        with Path(name).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(
            f"cannot be read ({reason}); name a YAML file on this machine, or {' or '.join(SHIPPED)}"
        ) from None
    if len(raw) > MAX_BYTES:
        raise ValueError(f"is larger than {MAX_BYTES} bytes; name the right file")
    return _entries(raw)


@cache
def _shipped(name: str) -> dict[str, Entry]:
    return _entries(files("mcspark.config").joinpath("codebooks").joinpath(f"{name}.yaml").read_bytes())


def _entries(raw: bytes) -> dict[str, Entry]:
    try:
        return _BOOK.validate_python(parse_yaml(raw.decode("utf-8-sig")) or {})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "its top"
        raise ValueError(
            f"is no codebook: {where}: {first['msg']}; write COLUMN: {{title: …, labels: {{code: words}}}}"
        ) from None
    except ValueError as error:
        raise ValueError(f"is no codebook: {error}") from None

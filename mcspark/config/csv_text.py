"""How the text of CSV files is cut into values."""

from __future__ import annotations

import codecs
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from mcspark.config.section import AsTuple, Section

NULLS = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "NaN", "nan")
"""Texts that R, Excel, pandas and databases write for a missing value."""


def _one_character(text: str) -> str:
    if len(text) != 1 or text in "\r\n\0" or ord(text) > 0xFFFF:
        raise ValueError(r'must be one character and no line break, such as ";" or "\t"')
    return text


def _encoding(name: str) -> str:
    try:
        "".encode(name)  # which codecs that make no text refuse
        return codecs.lookup(name).name
    except (LookupError, ValueError) as error:
        raise ValueError("is no known encoding; take one such as utf-8, windows-1252 or utf-16") from error


Character = Annotated[str, AfterValidator(_one_character)]


class CsvText(Section):
    """How the text of CSV files is cut into values; the jobs and ``mcspark init`` read by it alike."""

    delimiter: Character = Field(",", description='The character between values, such as ";" or "\\t".')
    quote: Character | None = Field('"', description="The character around values; null: quotes are text.")
    escape: Character | None = Field(
        None,
        description="The character before a quote inside quotes, and plain text elsewhere; null: such a "
        "quote is written twice.",
    )
    null_values: Annotated[tuple[str, ...], AsTuple] = Field(
        NULLS,
        description="Texts that stand for a missing value, in every column, keys too; an empty value always "
        "does.",
    )
    encoding: Annotated[str, AfterValidator(_encoding)] = Field(
        "utf-8", description="Encoding of the files, such as utf-8, windows-1252 or utf-16."
    )

    @model_validator(mode="after")
    def _told_apart(self) -> CsvText:
        signs = [sign for sign in (self.delimiter, self.quote, self.escape) if sign is not None]
        if self.delimiter in signs[1:]:
            raise ValueError(f"delimiter {self.delimiter!r} is the quote or the escape too; choose another")
        return self
